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
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	ca, server, life := c.ca, "", time.Duration(0)
	if c.hosts != nil {
		server = c.hosts[i].seat.server()
	} else {
		p := c.proxies[i]
		p.mu.Lock()
		ca, server, life = p.identity.ca, "https://"+p.address, p.agentFor
		p.mu.Unlock()
	}
	template := clientTemplate(agentUser+c.Nodes[i].Name, "system:zedkube")
	if life > 0 {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(life)
	}
	made, err := ca.issue(template)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for the agent of %s: %w", c.Nodes[i].Name, err)
	}
	return kubeconfig(server, ca.made.cert, made), nil
}

// ShortenAgentKubeconfig has AgentKubeconfig(i) hold certificates from now on that expire after so much time.
func (c *Cluster) ShortenAgentKubeconfig(i int, life time.Duration) error {
	if c.hosts != nil {
		return errNoProxy
	}
	p := c.proxies[i]
	p.mu.Lock()
	defer p.mu.Unlock()
	p.agentFor = life
	return nil
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

// Forbid takes a verb for a resource, as in "create" of "pods/eviction", from zedkube's roles until
// Permit. What the API server refuses because of it, Permissions does not report.
func (c *Cluster) Forbid(ctx context.Context, verb, resource string) error {
	objects, err := c.rbac(ctx)
	if err != nil {
		return err
	}
	taken := false
	for _, o := range objects {
		var role rbacv1.ClusterRole // a Role has the same rules, a binding none
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
			return fmt.Errorf("read the rules of %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		rules, found := without(role.Rules, verb, resource)
		if !found {
			continue
		}
		taken = true
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&rbacv1.ClusterRole{Rules: rules})
		if err != nil {
			return fmt.Errorf("write the rules of %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		o.Object["rules"] = content["rules"]
		if err := c.updateRole(ctx, o); err != nil {
			return err
		}
	}
	if !taken {
		return fmt.Errorf("zedkube has no permission to %s %s", verb, resource)
	}
	c.forbidden.Store([2]string{verb, resource}, nil)
	return nil
}

// without returns the rules less one verb for one resource, and whether any had it.
func without(rules []rbacv1.PolicyRule, verb, resource string) (left []rbacv1.PolicyRule, found bool) {
	for _, rule := range rules {
		if !slices.Contains(rule.Resources, resource) || !slices.Contains(rule.Verbs, verb) {
			left = append(left, rule)
			continue
		}
		found = true
		others, same := *rule.DeepCopy(), *rule.DeepCopy()
		others.Resources = slices.DeleteFunc(others.Resources, func(r string) bool { return r == resource })
		same.Resources = []string{resource}
		same.Verbs = slices.DeleteFunc(same.Verbs, func(v string) bool { return v == verb })
		if len(others.Resources) > 0 {
			left = append(left, others)
		}
		if len(same.Verbs) > 0 {
			left = append(left, same)
		}
	}
	return left, found
}

// Permit makes zedkube's roles again what deploy/rbac.yaml says.
func (c *Cluster) Permit(ctx context.Context) error {
	objects, err := c.rbac(ctx)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if kind := o.GetKind(); kind == "ClusterRole" || kind == "Role" {
			if err := c.updateRole(ctx, o); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Cluster) updateRole(ctx context.Context, o *unstructured.Unstructured) error {
	plural, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	if _, err := c.dynamic.Resource(plural).Namespace(o.GetNamespace()).Update(ctx, o, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("change %s %s: %w", o.GetKind(), o.GetName(), err)
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

// asksFor is the resource with its part, or the path, that the call is about.
func (call Call) asksFor() string {
	if call.Resource == "" {
		return call.Path
	}
	return strings.TrimSuffix(call.Resource+"/"+call.Subresource, "/")
}

// isForbidden says whether the call lacks what Forbid has taken.
func (c *Cluster) isForbidden(call Call) bool {
	_, is := c.forbidden.Load([2]string{call.Verb, call.asksFor()})
	return is
}

// covers says whether the call needs, and has by, this.
func (p Permission) covers(call Call) bool {
	return p.Resource == call.asksFor() && p.Verb == call.Verb && p.Group == call.Group &&
		(p.Namespace == "" || p.Namespace == call.Namespace) && (p.Name == "" || p.Name == call.Name)
}

// Permissions compares what agents have asked for with deploy/rbac.yaml: unused is what nobody
// needed, refused what they were not allowed, in words. The cluster must have been started
// with Options.Audit.
func (c *Cluster) Permissions(ctx context.Context) (unused []Permission, refused []string, err error) {
	if unused, err = c.permitted(ctx); err != nil {
		return nil, nil, err
	}
	calls, err := c.Calls()
	if err != nil {
		return nil, nil, err
	}
	for _, call := range calls {
		switch {
		case !strings.HasPrefix(call.User, agentUser):
		case call.Code == 403 && c.isForbidden(call):
		case call.Code == 403:
			refused = append(refused, fmt.Sprintf("%s %s %s%s %s %s", call.Verb, call.Group, call.Path, call.Resource+"/"+call.Subresource, call.Namespace, call.Name))
		default:
			unused = slices.DeleteFunc(unused, func(p Permission) bool { return p.covers(call) })
		}
	}
	slices.Sort(refused)
	return unused, slices.Compact(refused), nil
}

// Needed returns an error unless agents have needed these permissions of deploy/rbac.yaml, as
// Permission.String says them. As Permissions, it takes Options.Audit.
func (c *Cluster) Needed(ctx context.Context, names ...string) error {
	all, err := c.permitted(ctx)
	if err != nil {
		return err
	}
	unused, _, err := c.Permissions(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		is := func(p Permission) bool { return p.String() == name }
		if !slices.ContainsFunc(all, is) {
			return fmt.Errorf("deploy/rbac.yaml has no permission to %s", name)
		}
		if slices.ContainsFunc(unused, is) {
			return fmt.Errorf("no agent has needed the permission to %s", name)
		}
	}
	return nil
}

// permitted is all that deploy/rbac.yaml grants.
func (c *Cluster) permitted(ctx context.Context) (all []Permission, err error) {
	objects, err := c.rbac(ctx)
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		if all, err = appendPermissions(all, o); err != nil {
			return nil, err
		}
	}
	return all, nil
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
