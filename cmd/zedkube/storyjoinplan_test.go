package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zedkube/zedkube/test/player"
)

// liar IP CLUSTER OFFSET: a status server of that cluster whose clock is wrong by
// so much.
func liar(s *story, _ *testscript.TestScript, args []string) error {
	offset, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(s.ctx, "tcp", net.JoinHostPort(args[0], strconv.Itoa(player.StatusPort)))
	if err != nil {
		return err
	}
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", time.Now().Add(offset).UTC().Format(http.TimeFormat))
		if r.URL.Path != "/status" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, "cluster:"+args[1])
	})}
	go func() { _ = server.Serve(listener) }()
	context.AfterFunc(s.ctx, func() { _ = server.Close() })
	return nil
}
