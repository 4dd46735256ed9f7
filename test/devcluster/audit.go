//go:build linux

package devcluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// auditPolicy notes every request once, without its content: watches when they
// begin, everything else when it is answered.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// Call is one request that reached the API server.
type Call struct {
	At          time.Time // when it was received
	Stage       string    // ResponseStarted of a watch, ResponseComplete of anything
	From        string    // IP address; of a node for what came through its proxy
	User        string
	UserAgent   string
	Verb        string
	Path        string // where there is no Resource
	Group       string // of the API
	Resource    string
	Subresource string
	Namespace   string
	Name        string
	Code        int
}

// Calls returns what the API server has noted, in the order of its answers. A
// watch is there once, when it began. The cluster must have been started with
// Options.Audit.
func (c *Cluster) Calls() ([]Call, error) {
	content, err := os.ReadFile(c.auditLog())
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	var calls []Call
	for line := range bytes.Lines(content) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // being written
		}
		var event struct {
			Stage                    string
			Verb                     string
			UserAgent, RequestURI    string
			User                     struct{ Username string }
			SourceIPs                []string
			RequestReceivedTimestamp time.Time
			ObjectRef                struct{ APIGroup, Resource, Subresource, Namespace, Name string }
			ResponseStatus           struct{ Code int }
		}
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("decode the audit log: %w", err)
		}
		if event.Verb == "watch" && event.Stage == "ResponseComplete" {
			continue
		}
		call := Call{
			At: event.RequestReceivedTimestamp, Stage: event.Stage, UserAgent: event.UserAgent, Verb: event.Verb,
			Group: event.ObjectRef.APIGroup, Resource: event.ObjectRef.Resource, Subresource: event.ObjectRef.Subresource,
			Namespace: event.ObjectRef.Namespace, Name: event.ObjectRef.Name,
			User: event.User.Username, Code: event.ResponseStatus.Code,
		}
		if call.Resource == "" {
			call.Path, _, _ = strings.Cut(event.RequestURI, "?")
		}
		if len(event.SourceIPs) > 0 {
			call.From = event.SourceIPs[0]
		}
		calls = append(calls, call)
	}
	return calls, nil
}

func (c *Cluster) auditLog() string { return c.pki("audit.log") }

// auditArgs are the API server's flags for the audit log, if it was asked for.
func (c *Cluster) auditArgs() ([]string, error) {
	if !c.audit {
		return nil, nil
	}
	policy := c.pki("audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, fmt.Errorf("write the audit policy: %w", err)
	}
	return []string{"--audit-policy-file=" + policy, "--audit-log-path=" + c.auditLog(), "--audit-log-mode=blocking"}, nil
}
