package k3sconfig

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/keptfile"
	"github.com/zedkube/zedkube/types"
)

const (
	// maxVersion is twice what k3s has ever called a version.
	maxVersion = 64
	// maxOverride bounds the override file. A topic's value has at most 64 KiB
	// on the socket, so that only a file can bring more.
	maxOverride = 1 << 20
	// patience is how long the disk may take for one look at a small file.
	patience = 30 * time.Second
)

// facts is everything decide may look at.
type facts struct {
	now       time.Time
	heard     bool // zedagent has said its settings, and has not withdrawn them
	settings  types.ConfigItemValueMap
	published types.KubeConfig // by a former run too; its zero value while there is none
	file      keptfile.State
}

// action is everything decide may ask for.
type action struct {
	publish *types.KubeConfig
	keep    *keptfile.Wish // make the file so
	again   time.Duration  // when to look again, at the latest
	stuck   bool           // the disk does not answer
	refused string         // what of the settings is not obeyed, and why
}

// decide says what to publish and what the file should be, from facts alone.
// While zedagent has said nothing, what a former run left stands; a word that
// makes no sense changes nothing.
func decide(f facts) action {
	a := action{again: period, stuck: f.file.Busy && f.now.Sub(f.file.Since) > patience}
	want := f.file.Kept
	if f.heard {
		config, err1 := kubeConfig(f)
		w, err2 := override(f.settings)
		if err2 == nil {
			want = w
		}
		a.publish, a.refused = &config, errorText(errors.Join(err1, err2))
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
func kubeConfig(f facts) (types.KubeConfig, error) {
	config := f.published
	version, err1 := version(f.settings)
	if err1 == nil {
		config.K3sVersion = version
	}
	events, err2 := text(f.settings, types.SettingDescheduleOn)
	if err2 == nil {
		config.VmiDescheduleEvents.OnBoot = names(events, "boot")
	}
	return config, errors.Join(err1, err2)
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

// version is the k3s version asked for, "" for the kube container's own. What
// versions there are is not known here; this becomes part of a file name and
// of an address there.
func version(m types.ConfigItemValueMap) (string, error) {
	v, err := text(m, types.SettingK3sVersion)
	v = strings.TrimSpace(v)
	switch {
	case err != nil:
		return "", err
	case len(v) > maxVersion:
		return "", fmt.Errorf("%s has %d bytes, %d are allowed", types.SettingK3sVersion, len(v), maxVersion)
	case strings.ContainsFunc(v, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", fmt.Errorf("%s is no version: %q", types.SettingK3sVersion, v)
	}
	return v, nil
}

// override is what the file should be. The setting is standard base64; line
// breaks and blanks in it, as tools put them there, and missing padding do not
// matter.
func override(m types.ConfigItemValueMap) (keptfile.Wish, error) {
	encoded, err := text(m, types.SettingK3sOverride)
	if err != nil {
		return keptfile.Wish{}, err
	}
	const longest = 2 * maxOverride // base64 is a third longer, with line breaks a bit more
	if len(encoded) > longest {
		return keptfile.Wish{}, tooLong()
	}
	encoded = strings.Join(strings.Fields(encoded), "")
	if encoded == "" {
		return keptfile.Wish{Do: keptfile.Remove}, nil
	}
	encoding := base64.StdEncoding
	if !strings.HasSuffix(encoded, "=") {
		encoding = base64.RawStdEncoding
	}
	content, err := encoding.DecodeString(encoded)
	switch {
	case err != nil:
		return keptfile.Wish{}, fmt.Errorf("decode %s: %w", types.SettingK3sOverride, err)
	case len(content) > maxOverride:
		return keptfile.Wish{}, tooLong()
	}
	return keptfile.Wish{Do: keptfile.Write, Content: string(content)}, nil
}

func tooLong() error {
	return fmt.Errorf("%s is longer than %d bytes", types.SettingK3sOverride, maxOverride)
}

// text is a setting of type string, "" where it is missing. An item without a
// type is taken for one.
func text(m types.ConfigItemValueMap, key string) (string, error) {
	item := m.GlobalSettings[key]
	if item.ItemType != types.ConfigItemString && item.ItemType != types.ConfigItemInvalid {
		return "", fmt.Errorf("%s is no text but of type %s", key, item.ItemType)
	}
	return item.StrValue, nil
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}
