package k3sconfig

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/base/k3sbinary"
	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/types"
)

// lookFor is how long a look at the disk may take.
const lookFor = time.Minute

// again looks at the binary that is there now, none where there is none.
func again(ctx context.Context, files k3sbinary.Files, last k3sbinary.Ran) k3sbinary.Ran {
	path, err := files.Binary()
	if err != nil {
		return k3sbinary.Ran{}
	}
	is, _ := last.Again(ctx, path) // no file is no binary
	return is
}

// node is what is known of this node and its cluster.
type node struct {
	known   bool   // zedkube knows whether the device belongs to a cluster
	alone   bool   // it does not
	running string // the own kubelet's version, as the Node of this boot says; "" while unknown
	binary  string // what the k3s binary on disk is; "" for unknown
}

// decideVersion is the version for the kube container, and what is published of it: what
// KubeLifecycle releases, else what runs. A change of k3s.version reaches every node within
// seconds, and the kube container of each stops k3s for it at once: three servers together
// lose etcd's quorum. Nor is it ever the kube container's own version once k3s runs: that
// changes with every update of EVE. A device that has left its cluster starts with the files of
// before it joined; what it is told then is the version of these, not that of the cluster.
func decideVersion(f facts) (version string, s types.K3sVersionStatus, err error) {
	wanted := f.status.Wanted
	if f.heard {
		wanted, err = asked(f.settings)
	}
	s = types.K3sVersionStatus{Version: f.published.K3sVersion, Running: f.node.running, OnDisk: f.node.running != "" && f.node.running == f.node.binary, Binary: f.node.binary, Wanted: wanted}
	switch pin := s.Running != "" && s.OnDisk; {
	case f.lifecycle == nil && s.Version != "": // a change may be under way
	case f.lifecycle != nil && f.lifecycle.Released != "":
		s.Version = f.lifecycle.Released
	case pin:
		s.Version = s.Running
	case f.node.alone && s.Running == "" && s.Binary != "":
		s.Version = s.Binary
	}
	if wanted == "" && err == nil || wanted == s.Version {
		return s.Version, s, err
	}
	switch {
	case err != nil:
		s.Why = fmt.Sprintf("The setting k3s.version is refused: %v.", err)
	case f.lifecycle == nil || f.lifecycle.Wanted != wanted:
		s.Why = "It is not decided yet when this node changes to " + wanted + "."
	default:
		s.Why = f.lifecycle.Reason
		if f.lifecycle.Phase == types.LifecycleRefused {
			err = errors.New(f.lifecycle.Reason)
		}
	}
	s.Held, s.Since = true, f.now.UTC().Truncate(time.Second)
	if f.status.Held && f.status.Wanted == wanted {
		s.Since = f.status.Since
	}
	return s.Version, s, err
}

// asked is the version that the setting asks for, "" for none; as it stands
// there where it is no version.
func asked(m types.ConfigItemValueMap) (string, error) {
	v, err := text(m, types.SettingK3sVersion)
	if v = strings.TrimSpace(v); v == "" || err != nil {
		return "", err
	}
	if _, err := types.ParseK3sVersion(v); err != nil {
		return shortened(v), fmt.Errorf("%s is %q: %w", types.SettingK3sVersion, shortened(v), err)
	}
	return v, nil
}

// shortened is a text that may be anything, fit for a sentence.
func shortened(text string) string {
	return strings.ToValidUTF8(phrase.Cut(text, 64), "")
}
