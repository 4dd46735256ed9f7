package metrics

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/pkg/base/loop"
)

// stepped is the pulse of a loop whose first step took three seconds and failed,
// and whose second took one.
func stepped(t *testing.T) *loop.Pulse {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	pulse, n := &loop.Pulse{}, 0
	ctx, cancel := context.WithCancel(t.Context())
	loop.Run(ctx, log, pulse, time.Hour, func(context.Context) error {
		if n++; n == 1 {
			time.Sleep(3 * time.Second)
			return errors.New("no")
		}
		time.Sleep(time.Second)
		cancel()
		return nil
	})
	return pulse
}
