package page

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"

	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/zedkube/zedkube/pkg/base/boundedhttp"
	"github.com/zedkube/zedkube/types"
)

// broken panics when it is asked for a log.
type broken struct{}

func (broken) Logs(context.Context, types.Pod, types.LogOptions) (io.ReadCloser, error) {
	panic("a fault in a log")
}

func TestAPanicInALogIsLoggedOnceAndGivesItsPlacesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		app := s.app(1, false, "main", "side")
		s.page.Kube = broken{}
		log, hook := logtest.NewNullLogger()
		h := boundedhttp.Recover(log, http.HandlerFunc(s.page.serveLogs))
		s.wrap = func(http.Handler) http.Handler { return h }
		for range maxFollowed + 1 {
			<-s.ask("/api/logs?follow=1&app="+app, false).gone
		}
		if logged := hook.AllEntries(); len(logged) != 1 || logged[0].Message != "a request ended in a panic: a fault in a log" {
			t.Errorf("logged: %v", logged)
		}
	})
}
