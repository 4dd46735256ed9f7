package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// uses FILE PATH CODE: waits for what the API server says to who has that kubeconfig,
// whose token is a secret from now on.
func uses(s *story, ts *testscript.TestScript, args []string) error {
	cfg, err := clientcmd.RESTConfigFromKubeConfig([]byte(ts.ReadFile(args[0])))
	if err != nil {
		return err
	}
	if cfg.BearerToken == "" {
		return fmt.Errorf("%s has no token", args[0])
	}
	s.handed = append(s.handed, cfg.BearerToken)
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	return eventually(func() string {
		ctx, cancel := context.WithTimeout(s.ctx, 15*time.Second)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, cfg.Host+args[1], http.NoBody)
		if err != nil {
			return err.Error()
		}
		answer, err := client.Do(request)
		if err != nil {
			return err.Error()
		}
		defer answer.Body.Close()
		return differs(args[1]+" with "+args[0], strconv.Itoa(answer.StatusCode), args[2])
	})
}
