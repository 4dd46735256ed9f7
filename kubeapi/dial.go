package kubeapi

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/zedkube/zedkube/kubeapi/access"
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
	cfg, _, err := access.RestConfig(path, access.ReadTrusted)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", types.ErrNoAPI, err)
	}
	base, err := access.NewTransport(cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", types.ErrNoAPI, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	// Without probes it never finds the server silent, and lets all through.
	unreported := access.NewLiveness(ctx, log, func(time.Time, string) {})
	conn, err := newConnection(ctx, cfg, &access.AuditTransport{RoundTripper: base, Log: operations}, unreported)
	if err != nil {
		cancel()
		return nil, nil, fmt.Errorf("%w: %w", types.ErrNoAPI, err)
	}
	c = New(Config{Log: log, Kubeconfig: path, Operations: operations})
	c.session.Swap(conn)
	return c, func() { c.hangUp(conn); cancel() }, nil
}

// hangUp ends a dialled connection.
func (c *Client) hangUp(conn *access.Connection) {
	c.session.Swap(nil)
	conn.Retire()
	conn.Users.Wait()
	conn.Base.CloseAll()
}

// ReadKubeconfig reads the file at path and refuses what the agent refuses. In a
// copy of a device it may belong to anybody, and its secrets may be redacted.
func ReadKubeconfig(path string, copied bool) (access.Kubeconfig, error) {
	return access.ReadKubeconfig(path, copied)
}
