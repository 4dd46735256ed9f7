package kubeapi

import (
	"errors"
	"testing"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"k8s.io/klog/v2"
)

func TestWhatClientGoSaysIsDebuggingInOurLog(t *testing.T) {
	log, hook := logtest.NewNullLogger()
	log.SetLevel(logrus.DebugLevel)
	LogTo(log)
	defer klog.ClearLogger()
	klog.InfoS("renewed", "msg", "lease")
	klog.ErrorS(errors.New("refused"), "failed")
	klog.V(2).InfoS("not worth it")
	entries := hook.AllEntries()
	if len(entries) != 2 {
		t.Fatalf("%d entries: %v", len(entries), entries)
	}
	if e := entries[0]; e.Level != logrus.DebugLevel || e.Message != "renewed" || e.Data["kube.msg"] != "lease" {
		t.Errorf("entry is %+v", e)
	}
	if e := entries[1]; e.Level != logrus.DebugLevel || e.Data["error"].(error).Error() != "refused" {
		t.Errorf("entry is %+v", e)
	}
}
