package access

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/types"
)

const (
	// refusedFor is how long a refusal is reported that was not repeated: what was granted
	// meanwhile may be asked for much later.
	refusedFor   = time.Hour
	maxRefused   = 8        // that are named
	maxRefusal   = 16 << 10 // bytes of an answer that are read
	roleBindings = "bind clusterroles.rbac.authorization.k8s.io"
)

// judged notes whether the server permits what was asked for. Permissions are granted for
// verbs and kinds of objects, in a namespace or everywhere: so the names of objects are left out.
func (c *Credentials) judged(req *http.Request, resp *http.Response) {
	refused := resp.StatusCode == http.StatusForbidden
	if c == nil || !refused && !c.anyRefused() {
		return
	}
	name := permissionOf(req)
	if refused {
		switch body := peek(resp); {
		case bytes.Contains(body, []byte("is attempting to grant RBAC permissions")):
			name = roleBindings
		case !bytes.Contains(body, []byte("forbidden: User ")):
			return // a quota or a webhook: what is refused is this object, by somebody else
		}
	}
	c.Change(func(r *types.Credentials) {
		switch now := time.Now(); {
		case !refused && resp.StatusCode < http.StatusBadRequest:
			delete(c.refused, name)
			if strings.HasPrefix(name, "create clusterrolebindings") {
				delete(c.refused, roleBindings)
			}
		case refused && c.refused == nil:
			c.refused = map[string]time.Time{name: now}
		case refused && (len(c.refused) < maxRefused || !c.refused[name].IsZero()):
			c.refused[name] = now
		}
		maps.DeleteFunc(c.refused, func(_ string, at time.Time) bool { return time.Since(at) > refusedFor })
		r.Refused = strings.Join(slices.Sorted(maps.Keys(c.refused)), ", ")
	})
}

func (c *Credentials) anyRefused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.refused) > 0
}

// permissionOf names what a request needs, as in "patch leases.coordination.k8s.io in eve-kube-app".
func permissionOf(req *http.Request) string {
	group, namespace, part := resourceOf(req.URL.Path)
	if len(part) == 0 {
		return verbOf(req) + " " + Cut(req.URL.Path, VersionLength)
	}
	name := verbOf(req) + " " + part[0]
	if len(part) > 2 {
		name += "/" + part[2]
	}
	if group != "" {
		name += "." + group
	}
	if namespace != "" {
		name += " in " + namespace
	}
	return name
}

// peek returns the beginning of an answer, which the caller reads again.
func peek(resp *http.Response) []byte {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // an error comes again
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), resp.Body), resp.Body}
	return body
}
