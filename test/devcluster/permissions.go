//go:build linux

package devcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// agentUser is how the names of agents begin, as docs/operations.md says it, "A
// kubeconfig for zedkube alone".
const agentUser = "system:zedkube:"

// AgentKubeconfig returns a kubeconfig for zedkube on node i: NodeKubeconfig with a
// certificate that may do what deploy/rbac.yaml says and no more.
func (c *Cluster) AgentKubeconfig(i int) ([]byte, error) {
	ca, server := c.ca, ""
	if c.hosts != nil {
		server = c.hosts[i].seat.server()
	} else {
		p := c.proxies[i]
		p.mu.Lock()
		ca, server = p.identity.ca, "https://"+p.address
		p.mu.Unlock()
	}
	made, err := ca.issue(clientTemplate(agentUser+c.Nodes[i].Name, "system:zedkube", "system:zedkube:servers"))
	if err != nil {
		return nil, fmt.Errorf("make a certificate for the agent of %s: %w", c.Nodes[i].Name, err)
	}
	return kubeconfig(server, ca.made.cert, made), nil
}

// rbac reads deploy/rbac.yaml.
func (c *Cluster) rbac(ctx context.Context) (objects []*unstructured.Unstructured, err error) {
	source, err := sourceDir(ctx, c.source)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(source, "../../deploy/rbac.yaml"))
	if err != nil {
		return nil, fmt.Errorf("read what zedkube may do: %w", err)
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var o unstructured.Unstructured
		switch err := decoder.Decode(&o.Object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("read what zedkube may do: %w", err)
		}
		objects = append(objects, &o)
	}
}

// allowAgents creates what deploy/rbac.yaml defines.
func (c *Cluster) allowAgents(ctx context.Context) error {
	objects, err := c.rbac(ctx)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := c.install(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// Permission is one verb of one rule of deploy/rbac.yaml, for one name where the rule has any.
type Permission struct {
	Namespace                   string // of a Role
	Group, Resource, Verb, Name string // Resource is a path where it begins with /
}

// String is as in "get pods/log in eve-kube-app".
func (p Permission) String() string {
	text := p.Verb + " " + p.Resource
	if p.Group != "" {
		text += "." + p.Group
	}
	if p.Name != "" {
		text += " " + p.Name
	}
	if p.Namespace != "" {
		text += " in " + p.Namespace
	}
	return text
}

// covers says whether the call needs, and has by, this.
func (p Permission) covers(call Call) bool {
	resource := call.Path
	if call.Resource != "" {
		resource = strings.TrimSuffix(call.Resource+"/"+call.Subresource, "/")
	}
	return p.Resource == resource && p.Verb == call.Verb && p.Group == call.Group &&
		(p.Namespace == "" || p.Namespace == call.Namespace) && (p.Name == "" || p.Name == call.Name)
}

// Permissions compares what agents have asked for with deploy/rbac.yaml: unused is what nobody
// needed, refused what they were not allowed, in words. The cluster must have been started
// with Options.Audit.
func (c *Cluster) Permissions(ctx context.Context) (unused []Permission, refused []string, err error) {
	objects, err := c.rbac(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, o := range objects {
		if unused, err = appendPermissions(unused, o); err != nil {
			return nil, nil, err
		}
	}
	calls, err := c.Calls()
	if err != nil {
		return nil, nil, err
	}
	for _, call := range calls {
		switch {
		case !strings.HasPrefix(call.User, agentUser):
		case call.Code == 403:
			refused = append(refused, fmt.Sprintf("%s %s %s%s %s %s", call.Verb, call.Group, call.Path, call.Resource+"/"+call.Subresource, call.Namespace, call.Name))
		default:
			unused = slices.DeleteFunc(unused, func(p Permission) bool { return p.covers(call) })
		}
	}
	slices.Sort(refused)
	return unused, slices.Compact(refused), nil
}

// appendPermissions adds those of a role; to bind one to another is never asked for by itself.
func appendPermissions(permissions []Permission, o *unstructured.Unstructured) ([]Permission, error) {
	var role rbacv1.ClusterRole // a Role has the same rules, a binding none
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
		return nil, fmt.Errorf("read the rules of %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	for _, rule := range role.Rules {
		groups, names := rule.APIGroups, rule.ResourceNames
		if len(groups) == 0 {
			groups = []string{""}
		}
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range groups {
			for _, resource := range slices.Concat(rule.Resources, rule.NonResourceURLs) {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						permissions = append(permissions, Permission{o.GetNamespace(), group, resource, verb, name})
					}
				}
			}
		}
	}
	return permissions, nil
}
