package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/client-go/util/jsonpath"

	"github.com/zedkube/zedkube/test/player"
)

// get asks a status server from an address of this machine, "" for any, and
// keeps the answer.
func (s *story) get(from, ip, path, accept string) (int, string, error) {
	ctx, cancel := context.WithTimeout(s.ctx, 15*time.Second)
	defer cancel()
	target := "http://" + net.JoinHostPort(ip, strconv.Itoa(player.StatusPort)) + path
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Accept", accept)
	dialer := net.Dialer{}
	if from != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	client := http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	s.answers = append(s.answers, string(body))
	return response.StatusCode, string(body), err
}

// explained is explains IP JSONPATH VALUE [UUID]: waits for what /status tells
// people, or those who want to join that cluster.
func explained(s *story, _ *testscript.TestScript, args []string) error {
	path := "/status"
	if len(args) > 3 {
		path += "?" + url.Values{"cluster": args[3:]}.Encode()
	}
	return eventually(func() string {
		_, body, err := s.get("", args[0], path, "application/json")
		if err != nil {
			return err.Error()
		}
		var value any
		if err := json.Unmarshal([]byte(body), &value); err != nil {
			return err.Error()
		}
		var out strings.Builder
		query := jsonpath.New(args[1]).AllowMissingKeys(true)
		if err := errors.Join(query.Parse(args[1]), query.Execute(&out, value)); err != nil {
			return err.Error()
		}
		return differs(args[1]+" of "+path+" of "+args[0], out.String(), args[2])
	})
}

// reportOf is report FROM IP PATH CODE [TEXT...]: waits until an address gets this answer
// from a status server, with these texts in it.
func reportOf(s *story, _ *testscript.TestScript, args []string) error {
	return eventually(func() string {
		code, body, err := s.get(args[0], args[1], args[2], "*/*")
		if err != nil {
			return err.Error()
		}
		if strconv.Itoa(code) != args[3] {
			return fmt.Sprintf("%s of %s answers %s with %d %s", args[2], args[1], args[0], code, body)
		}
		for _, text := range args[4:] {
			if !strings.Contains(body, text) {
				return fmt.Sprintf("%s is not in %s", text, body)
			}
		}
		return ""
	})
}
