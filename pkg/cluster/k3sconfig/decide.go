package k3sconfig

import (
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/zedkube/zedkube/pkg/base/keptfile"
	"github.com/zedkube/zedkube/types"
)

const (
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
	status    types.K3sVersionStatus
	release   types.K3sReleaseRequest
	node      node
	file      keptfile.State
}

// action is everything decide may ask for.
type action struct {
	publish *types.KubeConfig
	status  *types.K3sVersionStatus
	keep    *keptfile.Desired // make the file so
	again   time.Duration     // when to look again, at the latest
	stuck   bool              // the disk does not answer
	refused string            // which settings are refused, and why
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
		w, err2 := override(f.settings)
		if err2 == nil {
			want = w
		}
		err = errors.Join(err, err2)
	}
	a.refused = errorText(err)
	if f.node.known && (f.heard || config != f.published) {
		a.publish = &config
	}
	if f.node.known && (f.heard || f.node.member) {
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

// override is what the file should be. The setting is standard base64; line
// breaks and blanks in it, as tools put them there, and missing padding do not
// matter.
func override(m types.ConfigItemValueMap) (keptfile.Desired, error) {
	encoded, err := text(m, types.SettingK3sOverride)
	if err != nil {
		return keptfile.Desired{}, err
	}
	const longest = 2 * maxOverride // base64 is a third longer, with line breaks a bit more
	if len(encoded) > longest {
		return keptfile.Desired{}, tooLong()
	}
	encoded = strings.Join(strings.Fields(encoded), "")
	if encoded == "" {
		return keptfile.Desired{Do: keptfile.Remove}, nil
	}
	encoding := base64.StdEncoding
	if !strings.HasSuffix(encoded, "=") {
		encoding = base64.RawStdEncoding
	}
	content, err := encoding.DecodeString(encoded)
	switch {
	case err != nil:
		return keptfile.Desired{}, fmt.Errorf("decode %s: %w", types.SettingK3sOverride, err)
	case len(content) > maxOverride:
		return keptfile.Desired{}, tooLong()
	}
	// k3s does not start with a file that it cannot read: nor does any server of
	// the cluster, for it goes to all of them.
	var values map[string]any
	if err := yaml.Unmarshal(content, &values); err != nil {
		return keptfile.Desired{}, fmt.Errorf("%s is not a YAML mapping: %w", types.SettingK3sOverride, redacted(err))
	}
	return keptfile.Desired{Do: keptfile.Write, Content: string(content)}, nil
}

// redacted is an error of YAML without what stands in the file.
func redacted(err error) error {
	if line := yamlLine.FindString(err.Error()); line != "" {
		return errors.New(line)
	}
	return errors.New("it cannot be read")
}

var yamlLine = regexp.MustCompile(`\bline \d+\b`)

func tooLong() error {
	return fmt.Errorf("%s is longer than %d bytes", types.SettingK3sOverride, maxOverride)
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
