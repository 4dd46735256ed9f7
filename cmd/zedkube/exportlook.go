package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/zedkube/zedkube/kubeapi"
	"github.com/zedkube/zedkube/pkg/report/evereport"
	"github.com/zedkube/zedkube/types"
)

// exporter makes messages of a device's files.
type exporter struct {
	paths  paths
	now    time.Time
	agent  agentLife
	sender evereport.Sender
	info   types.EdgeNodeInfo
	doubts []string // of every message
	ask    func(ctx context.Context, p paths) ([]types.Node, error)
}

func newExporter(p paths, now time.Time) *exporter {
	e := &exporter{paths: p, now: now, agent: lifeOfAgent(p, now), ask: askNodes}
	var err error
	if e.info, err = ownName(p); err != nil {
		e.doubts = append(e.doubts, "the device has no UUID: "+err.Error())
	}
	e.sender.Device, e.sender.At = e.info.DeviceID, now
	member, _, err := readRecord[types.ClusterMembership](p.persistentFile(self, "ClusterMembership"))
	switch {
	case err != nil:
		e.doubts = append(e.doubts, "the cluster's UUID is not known: "+err.Error())
	case member.Belongs() && member.Config != nil:
		e.sender.ClusterID = member.Config.ClusterID.UUID
	}
	return e
}

// askNodes asks the API server.
func askNodes(ctx context.Context, p paths) (nodes []types.Node, err error) {
	err = withAPI(ctx, p, func(kube *kubeapi.Client) error {
		nodes, err = kube.FreshNodes(ctx)
		return err
	})
	return nodes, err
}

// all makes the messages of those names, each once; all kinds for no name.
func (e *exporter) all(ctx context.Context, names []string) ([]exported, error) {
	if len(names) == 0 {
		names = []string{messageCluster, messageUpdate, messageNode, messageApp, messageMetrics}
	}
	var all []exported
	for _, name := range names {
		switch name {
		case messageCluster:
			all = append(all, e.cluster())
		case messageUpdate:
			all = append(all, e.update())
		case messageNode:
			all = append(all, e.node(ctx))
		case messageMetrics:
			all = append(all, e.metrics())
		case messageApp:
			all = append(all, e.apps()...)
		default: // checkExport has seen that it parses
			all = append(all, e.app(uuid.MustParse(strings.TrimPrefix(name, messageApp+"/"))))
		}
		if ctx.Err() != nil {
			return nil, exitWith(exitUsage, errors.New("interrupted"))
		}
	}
	seen := map[string]bool{}
	all = slices.DeleteFunc(all, func(x exported) bool {
		again := seen[x.name]
		seen[x.name] = true
		return again
	})
	for i := range all {
		if all[i].message != nil {
			all[i].doubts = append(slices.Clone(e.doubts), all[i].doubts...)
		}
	}
	return all, nil
}

// from is the sender as of at the latest, and never of a time to come.
func (e *exporter) from(at time.Time) evereport.Sender {
	s := e.sender
	if !at.IsZero() && at.Before(s.At) {
		s.At = at
	}
	return s
}

// alive doubts a message that an agent that does not run has left, and says as
// of when it is.
func (e *exporter) alive(x *exported, written time.Time) (at time.Time) {
	if e.agent.Runs {
		return e.now
	}
	x.doubts = append(x.doubts, "the agent does NOT run: "+e.agent.Why)
	if e.agent.Seen.After(written) {
		return e.agent.Seen
	}
	return written
}

// update is the last report of the kube container, which needs no agent.
func (e *exporter) update() exported {
	x := exported{name: messageUpdate}
	u, written, err := readRecord[types.KubeClusterUpdateStatus](e.paths.persistentFile("zedagent", "KubeClusterUpdateStatus"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		x.missing, x.inOrder = "the kube container has reported no update", true
	case err != nil:
		x.missing = err.Error()
	default:
		x.message = e.from(written).Update(u)
	}
	return x
}

// node asks the API server how the cluster sees this device.
func (e *exporter) node(ctx context.Context) exported {
	x := exported{name: messageNode}
	if e.info.DeviceName == "" && e.info.DeviceID == uuid.Nil {
		x.missing = "which node this device is, is not known"
		return x
	}
	if _, err := os.Stat(e.paths.kubeconfig); err != nil {
		x.missing = "the cluster cannot be asked: " + err.Error()
		return x
	}
	nodes, err := e.ask(ctx, e.paths)
	switch {
	case err == nil:
		own, wrong := ownNode(nodes, e.info)
		if wrong != nil {
			x.notes = append(x.notes, wrong.Error())
		}
		x.message = e.sender.Node(evereport.OwnNode{Answers: true, Ready: own.Ready})
	case exitCode(err) == exitNotPublished && !errors.Is(err, types.ErrRefused):
		x.notes = append(x.notes, "the API server cannot be reached: "+err.Error())
		x.message = e.sender.Node(evereport.OwnNode{})
	default:
		x.missing = "the cluster cannot be asked: " + err.Error()
	}
	return x
}

func (e *exporter) apps() []exported {
	files, err := filepath.Glob(filepath.Join(e.paths.runDir(), self, "ENClusterAppStatus", "*.json"))
	if err != nil {
		return []exported{{name: messageApp, missing: err.Error()}}
	}
	var all []exported
	for _, file := range files { // sorted by Glob
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		id, err := uuid.Parse(name)
		if err != nil {
			all = append(all, exported{name: messageApp + "/" + clean(name), missing: file + " is not named after an application"})
			continue
		}
		all = append(all, e.app(id))
	}
	if len(all) == 0 {
		return []exported{{name: messageApp, missing: "no application has a status", inOrder: true}}
	}
	return all
}

func (e *exporter) app(id uuid.UUID) exported {
	x := exported{name: messageApp + "/" + id.String()}
	file := func(agent, topic string) string {
		return filepath.Join(e.paths.runDir(), agent, topic, id.String()+".json")
	}
	a, written, err := readRecord[types.ENClusterAppStatus](file(self, "ENClusterAppStatus"))
	if err != nil {
		x.missing = err.Error()
		return x
	}
	cfg, _, err := readRecord[types.AppInstanceConfig](file("zedagent", "AppInstanceConfig"))
	if err != nil {
		x.doubts = append(x.doubts, "its name and version are not known: "+err.Error())
	}
	at := e.alive(&x, written)
	if a.AppKubeStatus == types.AppKubeUnknown || a.AppKubeStatus == types.AppKubeAPIUnreachable {
		x.doubts = append(x.doubts, fmt.Sprintf("whether it runs here is not known: %s", a.AppKubeStatus))
		at = earlier(at, written)
	}
	a.AppUUID = id
	x.message = e.from(at).App(a, cfg)
	return x
}
