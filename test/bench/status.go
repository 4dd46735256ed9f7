package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/zedkube/zedkube/test/player"
)

const (
	// questions is how often /status is asked in each run, pauseBetween apart.
	questions    = 600
	pauseBetween = 10 * time.Millisecond
	// answerWithin is how long a joining node would wait for an answer.
	answerWithin = 5 * time.Second
)

var errHungUp = errors.New("the connection was closed")

// status measures /status of the server that nodes join by, as they ask it,
// while others disturb.
func (b *bench) status(ctx context.Context) error {
	const unknown = "no limits; not measured"
	m := b.fleet.Members[0]
	for _, s := range []struct{ what, role string }{
		{"GET /status, nobody else asks", ""},
		{fmt.Sprintf("the same while a crowd attempts %d idle connections from %d addresses, %d anew each second",
			crowd, len(addresses(m.IP)), comeBack), "hoard"},
		{"the same among slow and garbage requests, and requests for reports", "molest"},
	} {
		var all answers
		before := residentMB(m.PID())
		for range b.rounds {
			if err := b.besiege(ctx, s.role, m, &all); err != nil {
				return fmt.Errorf("%s: %w", s.what, err)
			}
		}
		b.add(s.what, unknown, "≤ 50 ms", "%s", all)
		b.add("CPU and RSS of the agent meanwhile", unknown, "—", "%.0f %% of a CPU, at most %.0f MB (%.0f before)",
			100*all.cpu/float64(b.rounds), all.rss, before)
	}
	return nil
}

// besiege asks /status while a crowd plays its role.
func (b *bench) besiege(ctx context.Context, role string, m *player.Member, all *answers) error {
	end, err := disturb(ctx, role, m)
	if err != nil {
		return err
	}
	return errors.Join(b.ask(ctx, m, all), end(all))
}

// answers is what askers got in all runs.
type answers struct {
	runs     [][]time.Duration
	failures []error
	cpu      float64 // the sum of the CPUs that the agent had in each run
	rss      float64 // its most, in MB
	did      map[string]int
}

func (a answers) String() string {
	text := percentiles(a.runs)
	if n := len(a.failures); n > 0 {
		text += fmt.Sprintf(", %d more without an answer (%v)", n, a.failures[0])
	}
	if len(a.did) > 0 {
		text += "; meanwhile " + listed(a.did)
	}
	return text
}

// ask asks again and again, from one address of the cluster's network after the
// other.
func (b *bench) ask(ctx context.Context, m *player.Member, a *answers) error {
	var took []time.Duration
	want := "\r\n\r\ncluster:" + b.fleet.ClusterID.String()
	began, spent := time.Now(), cpuSeconds(m.PID())
	for i := range questions {
		if err := pause(ctx, pauseBetween); err != nil {
			return err
		}
		from := append(net.IP(nil), m.IP.To4()...)
		from[3] = byte(200 + i%50)
		asked := time.Now()
		got, err := question(ctx, from, serverOf(m))
		switch {
		case err != nil:
			a.failures = append(a.failures, err)
		case got == "":
			a.failures = append(a.failures, errHungUp)
		case !strings.HasSuffix(got, want):
			return fmt.Errorf("/status of %s says %q", m.Name, got)
		default:
			took = append(took, time.Since(asked))
		}
		if i%10 == 0 {
			a.rss = max(a.rss, residentMB(m.PID()))
		}
	}
	a.cpu += (cpuSeconds(m.PID()) - spent) / time.Since(began).Seconds()
	if len(took) == 0 {
		return fmt.Errorf("nobody was answered: %w", a.failures[0])
	}
	a.runs = append(a.runs, took)
	return nil
}

// question is one request for /status, over a connection of its own.
func question(ctx context.Context, from net.IP, server string) (string, error) {
	conn, err := dialFrom(ctx, from, server)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if _, err := fmt.Fprint(conn, "GET /status HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n"); err != nil {
		return "", err
	}
	got, err := io.ReadAll(conn)
	return string(got), err
}

// dialFrom connects from one of the many addresses of loopback.
func dialFrom(ctx context.Context, from net.IP, server string) (net.Conn, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: from}, Timeout: answerWithin}
	conn, err := dialer.DialContext(ctx, "tcp", server)
	if err != nil {
		return nil, err
	}
	return conn, conn.SetDeadline(time.Now().Add(answerWithin))
}

func serverOf(m *player.Member) string {
	return net.JoinHostPort(m.IP.String(), strconv.Itoa(player.StatusPort))
}

// disturb lets another process play role against a member's status server. end
// ends it and adds what it has done.
func disturb(ctx context.Context, role string, m *player.Member) (end func(*answers) error, err error) {
	if role == "" {
		return func(*answers) error { return nil }, nil
	}
	cmd, out, err := again(ctx, role, serverOf(m))
	if err != nil {
		return nil, err
	}
	return func(a *answers) error {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			return err
		}
		var did map[string]int
		err := json.NewDecoder(out).Decode(&did)
		if a.did == nil {
			a.did = map[string]int{}
		}
		for what, n := range did {
			a.did[what] += n
		}
		return errors.Join(err, cmd.Wait())
	}, nil
}
