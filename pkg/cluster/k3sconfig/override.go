package k3sconfig

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	yamltree "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/zedkube/zedkube/pkg/base/keptfile"
	"github.com/zedkube/zedkube/pkg/base/safefile"
	"github.com/zedkube/zedkube/types"
)

const (
	// maxOverride bounds the override file, and with it the memory that parsing takes, about a
	// hundred times as much. A configuration of k3s has a few kB.
	maxOverride = 64 << 10
	// maxNotes bounds what is said of one file.
	maxNotes = 20
)

// override is the setting k3s.config.override. Only the content of want is its own text, which
// may have secrets.
type override struct {
	read     bool
	setting  types.ConfigItemValue // it was read from
	want     keptfile.Desired      // leaves the file alone where the setting is refused
	sum      string                // as nameOf what it decodes to
	refused  types.K3sOverrideNotes
	warnings types.K3sOverrideNotes
	sans     []string // option tls-san, which every certificate shows
}

// readOverride reads the setting. It is standard base64; line breaks and blanks in it,
// as tools put them there, and missing padding do not matter.
func readOverride(m types.ConfigItemValueMap) (o override) {
	content, err := decoded(m)
	switch {
	case err != nil:
		o.refused = note("", err.Error())
	case content == nil:
		o.want.Do, o.sum = keptfile.Remove, types.K3sNoOverride
	default:
		o = checked(content)
	}
	o.read, o.setting = true, m.GlobalSettings[types.SettingK3sOverride]
	return o
}

// onDisk is a file as it was last read or written here.
type onDisk struct {
	is   keptfile.Desired // leaves it alone where it cannot be read
	name string           // as nameOf; "" while its directory is not mounted, or not unlocked
}

// readOnDisk reads the file that a former run left. Until the vault is open, no name in it is found:
// without its key an encrypted directory is there and seems to have none of its files.
func readOnDisk(file string, open bool) onDisk {
	if _, err := os.Stat(path.Dir(file)); err != nil {
		return onDisk{}
	}
	content, err := safefile.Read(file, maxOverride)
	is := keptfile.Desired{Do: keptfile.Write, Content: string(content)}
	switch {
	case errors.Is(err, fs.ErrNotExist) && !open:
		return onDisk{}
	case errors.Is(err, fs.ErrNotExist):
		is = keptfile.Desired{Do: keptfile.Remove}
	case err != nil:
		return onDisk{name: types.K3sOverrideUnreadable}
	}
	return onDisk{is, nameOf(is)}
}

// accepted reports whether there is a file that would be accepted today.
func (d onDisk) accepted() bool {
	refused, _ := check([]byte(d.is.Content))
	return d.is.Do == keptfile.Write && len(refused) == 0
}

// nameOf names a file as K3sOverrideTurn does, "" for one that is left alone.
func nameOf(is keptfile.Desired) string {
	switch is.Do {
	case keptfile.Remove:
		return types.K3sNoOverride
	case keptfile.Write:
		return sumOf([]byte(is.Content))
	}
	return ""
}

// fileWanted is what the override file should be. Each change of it restarts k3s: that of a member
// is made when KubeLifecycle releases it, that of a device which hurts no other one at once.
func fileWanted(f facts) keptfile.Desired {
	want, accepted := f.file.Kept, f.heard && len(f.override.refused) == 0
	var turn types.K3sOverrideTurn
	if f.lifecycle != nil {
		turn = f.lifecycle.Override
	}
	read := f.current.name != "" && f.former.name != ""
	switch {
	case read && turn.Released == f.former.name: // it is put back, whatever the setting says
		want = f.former.is
	case accepted && (f.node.alone || f.neverRan || f.override.sum == f.current.name || read && f.override.sum == turn.Released):
		want = f.override.want
	case want.Do == keptfile.Leave && f.heard && f.current.accepted(): // not before zedagent has spoken, which may change it at once
		want = f.current.is
	}
	return want
}

// asideWanted is what the file of before the change should be, beside the override file: there
// before that is written, and until the change has ended. k3s may have run well with it alone.
func asideWanted(f facts) keptfile.Desired {
	switch {
	case f.lifecycle == nil || f.former.name == "":
	case ended(*f.lifecycle) && f.former.is.Do == keptfile.Write:
		return keptfile.Desired{Do: keptfile.Remove}
	case f.lifecycle.Override.Released != "" && f.lifecycle.Override.Former == f.current.name && f.current.is != f.former.is:
		return f.current.is
	}
	return keptfile.Desired{}
}

// ended reports that no change of the override is under way, as is known once the journal was read.
func ended(l types.KubeLifecycle) bool {
	unread := l.Phase == "" || l.Phase == types.LifecycleWaits && l.To == ""
	return l.Override.Released == "" && l.Phase != types.LifecycleStuck && !unread
}

func checked(content []byte) override {
	o := override{sum: sumOf(content)}
	if o.refused, o.warnings = check(content); len(o.refused) == 0 {
		o.want = keptfile.Desired{Do: keptfile.Write, Content: string(content)}
		o.sans = certSANs(content)
	}
	return o
}

const maxSANs = 20 // that are published

// certSANs are the values of option tls-san in an accepted configuration.
func certSANs(content []byte) (sans []string) {
	var document yamltree.Node
	if yamltree.Unmarshal(content, &document) != nil || len(document.Content) == 0 {
		return nil
	}
	root := document.Content[0]
	for i := 0; i+1 < len(root.Content); i += 2 {
		if name := strings.TrimSuffix(root.Content[i].Value, "+"); name != "tls-san" {
			continue
		}
		words, _ := wordsOf(root.Content[i+1])
		for _, word := range words {
			for san := range strings.SplitSeq(word, ",") {
				if san = strings.TrimSpace(san); len(sans) < maxSANs && len(san) <= 253 && certSAN.MatchString(san) {
					sans = append(sans, san)
				}
			}
		}
	}
	return sans
}

// decoded is what the setting decodes to, nil where there is none.
func decoded(m types.ConfigItemValueMap) ([]byte, error) {
	encoded, err := text(m, types.SettingK3sOverride)
	if err != nil {
		return nil, err
	}
	tooLong := fmt.Errorf("it is longer than %d bytes", maxOverride)
	const longest = 2 * maxOverride // base64 is a third longer, with line breaks a bit more
	if len(encoded) > longest {
		return nil, tooLong
	}
	encoded = strings.Join(strings.Fields(encoded), "")
	if encoded == "" {
		return nil, nil
	}
	encoding := base64.StdEncoding
	if !strings.HasSuffix(encoded, "=") {
		encoding = base64.RawStdEncoding
	}
	content, err := encoding.DecodeString(encoded)
	switch {
	case err != nil:
		return nil, fmt.Errorf("it is not base64: %w", err)
	case len(content) > maxOverride:
		return nil, tooLong
	}
	return content, nil
}

// err says why the setting is refused, nil where it is not.
func (o override) err() error {
	if len(o.refused) == 0 {
		return nil
	}
	return fmt.Errorf("%s is refused: %v", types.SettingK3sOverride, o.refused)
}

// overrideStatus is what to publish of the setting.
func overrideStatus(f facts) types.K3sOverrideStatus {
	o := f.override
	s := types.K3sOverrideStatus{Sum: o.sum, Accepted: len(o.refused) == 0, InForce: f.current.name, Refused: o.refused, Warnings: o.warnings, CertSANs: o.sans}
	s.Since = f.now.UTC().Truncate(time.Second)
	if was := f.overrideStatus; !was.Since.IsZero() && was.Sum == s.Sum && slices.Equal(was.Refused, s.Refused) {
		s.Since = was.Since
	}
	return s
}

// check judges the configuration of k3s in content: why it is refused, and what
// is accepted but probably a mistake. k3s does not start with a file that it
// cannot read, and the file goes to all nodes.
func check(content []byte) (refused, warnings types.K3sOverrideNotes) {
	var document, more yamltree.Node // a tree of nodes leaves aliases as they are: they cannot fill the memory
	reader := yamltree.NewDecoder(bytes.NewReader(content))
	if err := reader.Decode(&document); errors.Is(err, io.EOF) {
		return nil, nil // comments alone
	} else if err != nil {
		return note(lineOf(err), "it is not YAML"), nil
	}
	if err := reader.Decode(&more); !errors.Is(err, io.EOF) {
		return note("", "it has more than one YAML document, and k3s reads only the first"), nil
	}
	root := document.Content[0]
	if root.Kind != yamltree.MappingNode && root.ShortTag() != "!!null" {
		return note("", "it is not a YAML mapping of options to values"), nil
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		no, maybe := checkOption(root.Content[i], root.Content[i+1])
		refused, warnings = append(refused, no...), append(warnings, maybe...)
	}
	if len(refused) == 0 { // what is left has no aliases, so that it is not longer as JSON either
		var values map[string]any
		if err := yaml.UnmarshalStrict(content, &values); err != nil { // YAML 1.1, as k3s reads it
			refused = note(lineOf(err), "it is not YAML as k3s reads it, or has an option twice")
		}
	}
	return refused[:min(len(refused), maxNotes)], warnings[:min(len(warnings), maxNotes)]
}

// checkOption judges one option and its value. It names an option only where a
// table has it: anything else may be a secret in the wrong place.
func checkOption(key, value *yamltree.Node) (refused, warnings types.K3sOverrideNotes) {
	if key.Kind != yamltree.ScalarNode || key.ShortTag() != "!!str" || !optionName.MatchString(key.Value) {
		return note(line(key.Line), "this is not the name of an option of k3s"), nil
	}
	words, ok := wordsOf(value)
	if !ok {
		return note(line(value.Line), "the value of an option is one plain value or a list of them, without aliases and tags"), nil
	}
	name, appends := strings.CutSuffix(key.Value, "+")
	if why, listed := search(denied, name, ""); listed {
		if why != "" {
			refused = note(name, why)
		}
		return refused, nil
	}
	for _, word := range words {
		for part := range strings.SplitSeq(word, ",") {
			arg, _, _ := strings.Cut(strings.TrimLeft(strings.TrimSpace(part), "-"), "=")
			arg = strings.ReplaceAll(strings.TrimRight(arg, "+-"), "_", "-") // as k3s and Kubernetes read it
			if why, listed := search(denied, name, arg); listed {
				refused = append(refused, note(name+": "+arg, why)...)
			}
		}
	}
	if why, listed := search(doubtful, name, ""); listed && !appends {
		warnings = note(name, why)
	}
	return refused, warnings
}

// wordsOf are the values of an option, false where there is something else.
func wordsOf(value *yamltree.Node) (words []string, ok bool) {
	nodes := []*yamltree.Node{value}
	if value.Kind == yamltree.SequenceNode && value.Style&yamltree.TaggedStyle == 0 {
		nodes = value.Content
	}
	for _, n := range nodes {
		if n.Kind != yamltree.ScalarNode || n.Style&yamltree.TaggedStyle != 0 {
			return nil, false
		}
		words = append(words, n.Value)
	}
	return words, true
}

// listed is a row of a table: options of k3s, or values of one.
type listed struct{ options, values, why string }

// search finds the row of an option, or of a value of it.
func search(table []listed, option, value string) (why string, found bool) {
	for _, row := range table {
		if (value == "") == (row.values == "") && matches(row.options, option) && (value == "" || matches(row.values, value)) {
			return row.why, true
		}
	}
	return "", false
}

// matches reports whether a name is one of the patterns.
func matches(patterns, name string) bool {
	return slices.ContainsFunc(strings.Fields(patterns), func(pattern string) bool {
		is, _ := path.Match(pattern, name)
		return is
	})
}

var (
	optionName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}\+?$`)
	certSAN    = regexp.MustCompile(`^[A-Za-z0-9.:*_-]+$`) // a name or an address
	yamlLine   = regexp.MustCompile(`\bline \d+\b`)
)

// lineOf is where an error of YAML was found; its text may be that of the file.
func lineOf(err error) string { return yamlLine.FindString(err.Error()) }

func line(n int) string { return fmt.Sprintf("line %d", n) }

func note(option, why string) types.K3sOverrideNotes {
	return types.K3sOverrideNotes{{Option: option, Why: why}}
}

func sumOf(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }
