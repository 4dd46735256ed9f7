package k3sconfig

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/pkg/base/keptfile"
	"github.com/zedkube/zedkube/types"
)

var now = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)

// settings are those of k3s and one more, as zedagent says them.
func settings(version, events, override string) types.ConfigItemValueMap {
	m := types.ConfigItemValueMap{GlobalSettings: map[string]types.ConfigItemValue{
		types.SettingConfigInterval: {Key: types.SettingConfigInterval, ItemType: types.ConfigItemInt, IntValue: 60},
	}}
	for key, value := range map[string]string{
		types.SettingK3sVersion: version, types.SettingDescheduleOn: events, types.SettingK3sOverride: override,
	} {
		m.GlobalSettings[key] = types.ConfigItemValue{Key: key, ItemType: types.ConfigItemString, StrValue: value}
	}
	return m
}

func kube(version string, onBoot bool) types.KubeConfig {
	return types.KubeConfig{K3sVersion: version, VmiDescheduleEvents: types.VmiDescheduleEvents{OnBoot: onBoot}}
}

// decided decides from facts with the override read, as look does.
func decided(f facts) action {
	f.override = readOverride(f.settings)
	return decide(f)
}

func TestWhatTheKubeContainerIsTold(t *testing.T) {
	old := kube("v1.30.0+k3s1", true)
	noText := settings("v1.32.1+k3s1", "", "")
	noText.GlobalSettings[types.SettingK3sVersion] = types.ConfigItemValue{ItemType: types.ConfigItemInt, IntValue: 7}
	untyped := types.ConfigItemValueMap{GlobalSettings: map[string]types.ConfigItemValue{types.SettingK3sVersion: {StrValue: "v1.32.1+k3s1"}}}
	for name, row := range map[string]struct {
		settings types.ConfigItemValueMap
		want     types.KubeConfig
		refused  string
	}{
		"a version that is set":                           {settings("v1.32.1+k3s1", "", ""), kube("v1.32.1+k3s1", false), ""},
		"its blanks do not count":                         {settings(" v1.32.1+k3s1\n", "", ""), kube("v1.32.1+k3s1", false), ""},
		"one that was removed is undone":                  {settings("", "boot", ""), kube("", true), ""},
		"so is one that zedagent does not know":           {types.ConfigItemValueMap{}, kube("", false), ""},
		"an item without a type is a text":                {untyped, kube("v1.32.1+k3s1", false), ""},
		"boot stands among other events":                  {settings("", "later, boot ,never", ""), kube("", true), ""},
		"it is a word of its own":                         {settings("", "reboot,boots,Boot", ""), kube("", false), ""},
		"half a million events are looked through":        {settings("", strings.Repeat("x,", 1<<19)+"boot", ""), kube("", true), ""},
		"control characters make no version":              {settings("v1\x00.32", "", ""), kube("v1.30.0+k3s1", false), `k3s.version is "v1\x00.32": it is not a version such as v1.34.2+k3s1`},
		"nor does a line break":                           {settings("v1.32\nrm", "", ""), kube("v1.30.0+k3s1", false), `k3s.version is "v1.32\nrm": it is not a version such as v1.34.2+k3s1`},
		"nor do letters that only look like those of k3s": {settings("v1.32.1+k\u0417s1", "", ""), kube("v1.30.0+k3s1", false), "k3s.version is \"v1.32.1+k\u0417s1\": it is not a version such as v1.34.2+k3s1"},
		"nor does the name of a channel":                  {settings("latest", "", ""), kube("v1.30.0+k3s1", false), `k3s.version is "latest": it is not a version such as v1.34.2+k3s1`},
		"nor does a path":                                 {settings("../../../../etc/x", "", ""), kube("v1.30.0+k3s1", false), `k3s.version is "../../../../etc/x": it is not a version such as v1.34.2+k3s1`},
		"nor does a command":                              {settings("v1;reboot", "", ""), kube("v1.30.0+k3s1", false), `k3s.version is "v1;reboot": it is not a version such as v1.34.2+k3s1`},
		"a huge one is told by its beginning":             {settings(strings.Repeat("9", 1<<20), "boot", ""), kube("v1.30.0+k3s1", true), `k3s.version is "` + strings.Repeat("9", 64) + `...": it is not a version such as v1.34.2+k3s1`},
		"a number is no version":                          {noText, kube("v1.30.0+k3s1", false), "k3s.version is not a string but of type Int"},
		"a bad override leaves the rest alone":            {settings("v1.32.1+k3s1", "", "?"), kube("v1.32.1+k3s1", false), "k3s.config.override is refused: it is not base64: illegal base64 data at input byte 0"},
		"all that is bad is told in one line":             {settings("\x01", "", "?"), kube("v1.30.0+k3s1", false), `k3s.version is "\x01": it is not a version such as v1.34.2+k3s1; k3s.config.override is refused: it is not base64: illegal base64 data at input byte 0`},
	} {
		a := decided(facts{now: now, heard: true, settings: row.settings, published: old, node: node{known: true}})
		if a.publish == nil {
			t.Errorf("%s: nothing is published", name)
			continue
		}
		got := *a.publish
		if got.K3sVersion != old.K3sVersion {
			t.Errorf("%s: %s is passed on", name, got.K3sVersion)
		}
		if !strings.Contains(row.refused, types.SettingK3sVersion) {
			got.K3sVersion = a.status.Wanted // what the setting asks for
		}
		if d := cmp.Diff(row.want, got); d != "" {
			t.Errorf("%s: want -, got +\n%s", name, d)
		}
		if a.refused != row.refused {
			t.Errorf("%s: refused is %q, want %q", name, a.refused, row.refused)
		}
	}
}

func TestWhatTheOverrideFileShouldBe(t *testing.T) {
	const yaml = "kubelet-arg:\n- max-pods=42\n"
	std := base64.StdEncoding.EncodeToString([]byte(yaml))
	full := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("#", maxOverride)))
	encoded := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	there := func(content string) *keptfile.Desired { return &keptfile.Desired{Do: keptfile.Write, Content: content} }
	gone := &keptfile.Desired{Do: keptfile.Remove}
	for name, row := range map[string]struct {
		setting string
		want    *keptfile.Desired // nil: the file is left alone
		refused string
	}{
		"what the setting decodes to":         {std, there(yaml), ""},
		"line breaks and blanks do not count": {" " + std[:8] + "\r\n" + std[8:12] + "\t\n" + std[12:] + "\n", there(yaml), ""},
		"missing padding does not matter":     {strings.TrimRight(std, "="), there(yaml), ""},
		"no setting, no file":                 {"", gone, ""},
		"blanks are no setting":               {" \n", gone, ""},
		"what is no base64 changes nothing":   {"max-pods: 42", nil, "k3s.config.override is refused: it is not base64: illegal base64 data at input byte 3"},
		"nor does too much padding":           {"YQ===", nil, "k3s.config.override is refused: it is not base64: illegal base64 data at input byte 4"},
		"nor does half a setting":             {"YWJjZ", nil, "k3s.config.override is refused: it is not base64: illegal base64 data at input byte 4"},
		"nor does base64 of another alphabet": {"_-_-", nil, "k3s.config.override is refused: it is not base64: illegal base64 data at input byte 0"},
		"bytes that are no YAML":              {base64.StdEncoding.EncodeToString([]byte{0, 0xff}), nil, "k3s.config.override is refused: it is not YAML"},
		"half a line of YAML":                 {encoded("a: b\nsecret: [\n"), nil, "k3s.config.override is refused: line 2: it is not YAML"},
		"a list is no configuration":          {encoded("- a\n- b\n"), nil, "k3s.config.override is refused: it is not a YAML mapping of options to values"},
		"nor is a word":                       {encoded("secret"), nil, "k3s.config.override is refused: it is not a YAML mapping of options to values"},
		"a comment alone is one":              {encoded("# restart 3\n"), there("# restart 3\n"), ""},
		"the longest file":                    {full, there(strings.Repeat("#", maxOverride)), ""},
		"one byte more":                       {base64.StdEncoding.EncodeToString([]byte(strings.Repeat("#", maxOverride+1))), nil, "k3s.config.override is refused: it is longer than 65536 bytes"},
		"a huge setting is not even decoded":  {strings.Repeat("A", 64<<20), nil, "k3s.config.override is refused: it is longer than 65536 bytes"},
	} {
		a := decided(facts{now: now, heard: true, settings: settings("", "", row.setting), node: node{alone: true}})
		if d := cmp.Diff(row.want, a.keep); d != "" {
			t.Errorf("%s: want -, got +\n%s", name, d)
		}
		if a.refused != row.refused {
			t.Errorf("%s: refused is %q, want %q", name, a.refused, row.refused)
		}
	}
}

func TestWhenTheOverrideFileIsLookedAt(t *testing.T) {
	const yaml, encoded = "a: b", "YTogYg=="
	good, bad := settings("", "", encoded), settings("", "", "?")
	is := keptfile.Desired{Do: keptfile.Write, Content: yaml}
	for name, row := range map[string]struct {
		f     facts
		keep  *keptfile.Desired
		again time.Duration
		stuck bool
	}{
		"not before zedagent has spoken": {
			f: facts{},
		},
		"at once when it has": {
			f:    facts{heard: true, settings: good},
			keep: &is,
		},
		"again after the period": {
			f:    facts{heard: true, settings: good, file: keptfile.State{Kept: is, At: now.Add(-period)}},
			keep: &is,
		},
		"and not before": {
			f:     facts{heard: true, settings: good, file: keptfile.State{Kept: is, At: now.Add(-period + time.Second)}},
			again: time.Second,
		},
		"at once when the setting changes": {
			f:    facts{heard: true, settings: good, file: keptfile.State{Kept: keptfile.Desired{Do: keptfile.Remove}, At: now}},
			keep: &is,
		},
		"not while a look is under way": {
			f: facts{heard: true, settings: good, file: keptfile.State{Busy: true, Since: now.Add(-patience)}},
		},
		"which may take too long": {
			f:     facts{heard: true, settings: good, file: keptfile.State{Busy: true, Since: now.Add(-patience - 1)}},
			stuck: true,
		},
		"a bad setting before the first look leaves the file of a former run alone": {
			f: facts{heard: true, settings: bad},
		},
		"a bad setting later lets the last good one be kept": {
			f:    facts{heard: true, settings: bad, file: keptfile.State{Kept: is, At: now.Add(-period)}},
			keep: &is,
		},
		"so does a withdrawal": {
			f:    facts{file: keptfile.State{Kept: is, At: now.Add(-period)}},
			keep: &is,
		},
	} {
		row.f.now, row.f.node.alone = now, true
		if row.again == 0 {
			row.again = period
		}
		a := decided(row.f)
		if d := cmp.Diff(row.keep, a.keep); d != "" {
			t.Errorf("%s: want -, got +\n%s", name, d)
		}
		if a.again != row.again || a.stuck != row.stuck {
			t.Errorf("%s: again in %s, stuck %v; want %s, %v", name, a.again, a.stuck, row.again, row.stuck)
		}
		if !row.f.heard && a.publish != nil { // nor is the version of a member known
			t.Errorf("%s: %+v is published", name, *a.publish)
		}
	}
}

func FuzzSettings(f *testing.F) {
	f.Add("v1.32.1+k3s1", "boot", "YTogYg==")
	f.Add("\x00", ",, boot", "YQ =\n=")
	f.Fuzz(func(t *testing.T, version, events, override string) {
		a := decided(facts{now: now, heard: true, settings: settings(version, events, override), published: kube("old", false), node: node{known: true}})
		if v := a.publish.K3sVersion; len(v) > 64 || v != strings.TrimSpace(version) && v != "old" {
			t.Errorf("version %q became %q", version, v)
		}
		if strings.ContainsAny(a.refused, "\n\x00") {
			t.Errorf("a log line of %q", a.refused)
		}
		if a.keep != nil && len(a.keep.Content) > maxOverride {
			t.Errorf("a file of %d bytes", len(a.keep.Content))
		}
	})
}
