package loglevel

import (
	"testing"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"

	"github.com/zedkube/zedkube/pubsub"
	"github.com/zedkube/zedkube/types"
)

func settings(all, own string) types.ConfigItemValueMap {
	item := func(s string) types.ConfigItemValue {
		return types.ConfigItemValue{ItemType: types.ConfigItemString, StrValue: s}
	}
	return types.ConfigItemValueMap{
		GlobalSettings: map[string]types.ConfigItemValue{types.SettingDefaultLogLevel: item(all)},
		AgentSettings:  map[string]map[string]types.ConfigItemValue{"zedkube": {types.SettingAgentLogLevel: item(own)}},
	}
}

func TestTheLogLevelFollowsTheSettings(t *testing.T) {
	var table pubsub.Table[types.ConfigItemValueMap]
	logger, hook := test.NewNullLogger()
	logger.SetLevel(logrus.WarnLevel)
	report, reported := test.NewNullLogger()
	c := &Component{Log: report, Settings: &table, Logger: logger}
	step := func(why string, want logrus.Level) {
		t.Helper()
		for range 3 {
			if err := c.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := logger.GetLevel(); got != want {
			t.Errorf("%s: level %v, want %v", why, got, want)
		}
	}
	warnings := func() (n int) {
		for _, e := range reported.AllEntries() {
			if e.Level == logrus.WarnLevel {
				n++
			}
		}
		return n
	}

	step("before there are settings it stays", logrus.WarnLevel)
	_ = table.Publish(types.Global, types.ConfigItemValueMap{})
	step("settings that name none mean info", logrus.InfoLevel)
	_ = table.Publish(types.Global, settings("error", ""))
	step("the default of all agents counts", logrus.ErrorLevel)
	_ = table.Publish(types.Global, settings("error", "debug"))
	step("its own setting counts more", logrus.DebugLevel)
	_ = table.Publish(types.Global, settings("error", "chatty"))
	step("an unknown one changes nothing", logrus.DebugLevel)
	if n := warnings(); n != 1 {
		t.Errorf("%d warnings of one unknown level", n)
	}
	_ = table.Publish(types.Global, settings("error", "trace"))
	step("until a known one comes", logrus.TraceLevel)
	if n := len(hook.AllEntries()); n != 0 {
		t.Errorf("%d lines on the wrong logger", n)
	}
}
