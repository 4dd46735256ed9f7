package player

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

// askJoinServer reads the join server's /status.
func (d *Device) askJoinServer(ctx context.Context, status types.EdgeNodeClusterStatus) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return Ask(ctx, status.JoinServerIP)
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
