package k3sconfig

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/base/keptfile"
	"github.com/zedkube/zedkube/types"
)

// patience is how long the disk may take for one look at a small file.
const patience = 30 * time.Second

// facts is everything decide may look at.
type facts struct {
	now       time.Time
	heard     bool // zedagent has said its settings, and has not withdrawn them
	settings  types.ConfigItemValueMap
	published types.KubeConfig // by a former run too; its zero value while there is none
	status    types.K3sVersionStatus
	lifecycle *types.KubeLifecycle // nil while nothing is decided
	node      node
	file      keptfile.State

	override       override // of settings
	overrideStatus types.K3sOverrideStatus
	former         override // read where the override is refused, until a file is kept
}

// action is everything decide may ask for.
type action struct {
	publish *types.KubeConfig
	status  *types.K3sVersionStatus
	keep    *keptfile.Desired // make the file so

	override   *types.K3sOverrideStatus
	noOverride bool // there is no such setting: unpublish its status

	again   time.Duration // when to look again, at the latest
	stuck   bool          // the disk does not answer
	refused string        // which settings are refused, and why
}

// decide says what to publish and what the file should be, from facts alone.
// While zedagent has said nothing, what a former run left stands, but for the
// version of a member, and nothing is said before it is known whether the device
// is one; a setting that is invalid changes nothing.
func decide(f facts) action {
	a := action{again: period, stuck: f.file.Busy && f.now.Sub(f.file.Since) > patience}
	want := f.file.Kept
	config, status, err := kubeConfig(f)
	if f.heard {
		switch {
		case len(f.override.refused) == 0:
			want = f.override.want
		case want.Do == keptfile.Leave: // the last good one is that of a former run
			want = f.former.want
		}
		err = errors.Join(err, f.override.err())
		if s, is := overrideStatus(f); is {
			a.override = &s
		} else {
			a.noOverride = true
		}
	}
	a.refused = errorText(err)
	if f.node.known && (f.heard || config != f.published) {
		a.publish = &config
	}
	if f.node.known && (f.heard || f.status != (types.K3sVersionStatus{})) {
		a.status = &status
	}
	switch due := f.file.Due(want, f.now, period); {
	case want.Do == keptfile.Leave, f.file.Busy:
	case due <= 0:
		a.keep = &want
	default:
		a.again = due
	}
	return a
}

// kubeConfig is what to publish, and why it is not all that the settings ask for.
func kubeConfig(f facts) (types.KubeConfig, types.K3sVersionStatus, error) {
	config := f.published
	version, status, err1 := decideVersion(f)
	config.K3sVersion = version
	if !f.heard {
		return config, status, err1
	}
	events, err2 := text(f.settings, types.SettingDescheduleOn)
	if err2 == nil {
		config.VmiDescheduleEvents.OnBoot = names(events, "boot")
	}
	return config, status, errors.Join(err1, err2)
}

// names reports whether a comma-separated list has the word.
func names(list, word string) bool {
	for token := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(token) == word {
			return true
		}
	}
	return false
}

// text is a setting of type string, "" where it is missing. An item without a
// type is taken for one.
func text(m types.ConfigItemValueMap, key string) (string, error) {
	item := m.GlobalSettings[key]
	if item.ItemType != types.ConfigItemString && item.ItemType != types.ConfigItemInvalid {
		return "", fmt.Errorf("%s is not a string but of type %s", key, item.ItemType)
	}
	return item.StrValue, nil
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}
