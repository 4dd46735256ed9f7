package k3sconfig

import (
	"fmt"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/base/phrase"
	"github.com/zedkube/zedkube/types"
)

// node is what is known of this node and its cluster.
type node struct {
	known   bool // zedkube knows whether the device belongs to a cluster
	member  bool
	running string // the own kubelet's version, as the Node of this boot says; "" while unknown
	onDisk  bool   // the k3s binary on disk is of that version
}

// decideVersion is the version for the kube container, and what is published of it.
// A change of k3s.version reaches every node within seconds, and the kube
// container of each stops k3s for it at once: three servers together lose etcd's
// quorum. So in a cluster the version stays at what runs, and each node gets
// another one only when an operator says so there.
func decideVersion(f facts) (version string, s types.K3sVersionStatus, err error) {
	wanted, known := f.status.Wanted, f.heard
	if f.heard {
		wanted, err = asked(f.settings)
	}
	s = types.K3sVersionStatus{Version: f.published.K3sVersion, Running: f.node.running, OnDisk: f.node.onDisk, Wanted: wanted}
	switch {
	case !f.node.member:
		if known && err == nil {
			s.Version = wanted
		}
		return s.Version, s, err
	case s.Running != "" && s.OnDisk:
		s.Version = s.Running
	}
	if wanted == "" && err == nil || wanted == s.Version {
		return s.Version, s, err
	}
	if err == nil {
		err = types.CheckK3sStep(s.Version, wanted)
	}
	switch {
	case err != nil:
		s.Why = fmt.Sprintf("The setting k3s.version is refused: %v.", err)
	case f.release.Version == wanted:
		s.Version = wanted
		return s.Version, s, nil
	default:
		s.Why = fmt.Sprintf("The setting k3s.version asks for %s. The nodes of a cluster are updated one at a time. When it is this node's turn, run here: zedkube k3s release %s", wanted, wanted)
	}
	s.Held, s.Since = true, f.now.UTC().Truncate(time.Second)
	if f.status.Held && f.status.Wanted == wanted {
		s.Since = f.status.Since
	}
	return s.Version, s, nil
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
