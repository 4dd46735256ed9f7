package kubeapi

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/types"
)

// Dial returns a Client for a command that runs once: its verbs work until ctx
// ends or done is called, its tables are not kept. It reads the kubeconfig at
// that path and asks nothing of the server. Without a usable one its error
// wraps types.ErrNoAPI. done waits for verbs that are under way. What the verbs
// write is noted in operations.
func Dial(ctx context.Context, log logrus.FieldLogger, path string, operations types.OperationLog) (c *Client, done func(), err error) {
	if path, err = filepath.Abs(path); err != nil {
		return nil, nil, fmt.Errorf("find kubeconfig: %w", err)
	}
	cfg, _, err := readKubeconfig(path, readTrusted)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", types.ErrNoAPI, err)
	}
	base, err := newTransport(cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", types.ErrNoAPI, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	// Without probes it never finds the server silent, and lets all through.
	untold := newSilence(ctx, log, func(time.Time, string) {})
	conn, err := newConnection(ctx, cfg, &recorded{transport: base, log: operations}, untold)
	if err != nil {
		cancel()
		return nil, nil, fmt.Errorf("%w: %w", types.ErrNoAPI, err)
	}
	c = New(Config{Log: log, Kubeconfig: path, Operations: operations})
	c.swap(conn)
	return c, func() { c.hangUp(conn); cancel() }, nil
}

// hangUp ends a dialled connection.
func (c *Client) hangUp(conn *connection) {
	c.swap(nil)
	conn.retire()
	conn.users.Wait()
	conn.base.closeAll()
}
