//go:build linux

package devcluster

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// runs runs a program to its end.
func (c *crew) runs(p *process, path string, args ...string) error {
	p.asked = true
	if err := c.launch(p, path, args...); err != nil {
		return err
	}
	<-p.done
	if p.err != nil {
		return fmt.Errorf("run %s: %w: %s", p.name, p.err, tail(p.output))
	}
	return nil
}

// tail is the end of a log file, for an error message.
func tail(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-8):], "\n")
}

// poll calls try until it says true, ctx is done or an error shows that
// waiting is in vain.
func poll(ctx context.Context, what string, try func() bool) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !try() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
		case <-tick.C:
		}
	}
	return nil
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
