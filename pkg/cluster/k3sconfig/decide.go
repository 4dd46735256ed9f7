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
	neverRan       bool   // no k3s has run here, as far as is known
	current        onDisk // the override file
	former         onDisk // what it was before a change that is under way
	aside          keptfile.State
}

// action is everything decide may ask for.
type action struct {
	publish *types.KubeConfig
	status  *types.K3sVersionStatus
	keep    *keptfile.Desired // make the file so
	aside   *keptfile.Desired // and that of before

	override *types.K3sOverrideStatus

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
	want, aside := fileWanted(f), asideWanted(f)
	config, status, err := kubeConfig(f)
	if f.heard {
		err = errors.Join(err, f.override.err())
		s := overrideStatus(f)
		a.override = &s
	}
	a.refused = errorText(err)
	if f.node.known && (f.heard || config != f.published) {
		a.publish = &config
	}
	if f.node.known && (f.heard || f.status != (types.K3sVersionStatus{})) {
		a.status = &status
	}
	if aside.Do != keptfile.Leave && !f.aside.Busy && f.aside.Due(aside, f.now, period) <= 0 {
		a.aside = &aside
	}
	switch due := f.file.Due(want, f.now, period); {
	case want.Do == keptfile.Leave, f.file.Busy, aside.Do == keptfile.Write, aside.Do == keptfile.Remove && f.lifecycle.Override.Released != "":
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
