package player

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
)

// mayJoin reports that the join server lets this node in. It never waits: the
// waiting is zedkube's own wait-join, beside the reactions, until the boot ends.
func (d *Device) mayJoin(ctx context.Context) (bool, error) {
	if d.waiting == nil {
		ended := make(chan error, 1)
		d.waiting = ended
		d.waits.Go(func() { ended <- d.waitJoin(ctx) })
	}
	select {
	case err := <-d.waiting:
		d.waiting = nil
		return err == nil, err
	default:
		return false, nil
	}
}

// waitJoin runs wait-join to its end and says what it says.
func (d *Device) waitJoin(ctx context.Context) error {
	args := []string{"join", "wait", "-o", "json", "--interval", "500ms"}
	if d.APIPort != 0 {
		args = append(args, "--api-port", strconv.Itoa(d.APIPort))
	}
	cmd := d.command(args...)
	cmd.Stderr = d.Log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	runtime.LockOSThread() // as in launch
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start wait-join: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })()
	for lines := json.NewDecoder(out); ; {
		var line struct {
			MayJoin bool
			Why     string
		}
		if lines.Decode(&line) != nil {
			break
		}
		if line.MayJoin {
			d.say("kube-init", "joins: "+line.Why)
		} else {
			d.say("kube-init", "waits to join: "+line.Why)
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("wait-join: %w", err)
	}
	return nil
}

// StatusPort is the port of the status server (docs/wire.md, "Status server").
const StatusPort = 12346

// Ask reads /status of the status server on ip.
func Ask(ctx context.Context, ip net.IP) (string, error) {
	url := "http://" + net.JoinHostPort(ip.String(), strconv.Itoa(StatusPort)) + "/status"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1024))
	return strings.TrimSpace(string(body)), err
}
