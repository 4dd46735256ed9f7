// Package edge is the way of zedkube-edge to the API server: objects as JSON, kept by server-side apply. The
// daemon does not link it.
package edge

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ktypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/pkg/edge/object"
	"github.com/zedkube/zedkube/types"
)

// Manager is the field manager of all that zedkube-edge applies.
const Manager = "zedkube-edge"

const (
	requestWithin = 15 * time.Second // one request; a step has several
	resync        = 0                // nothing is listed again without a reason
)

// The times of the election: a leader that dies is followed within 15 s, and one whose API server is slow for less
// than 10 s stays.
const (
	leaseFor   = 15 * time.Second
	renewFor   = 10 * time.Second
	retryAfter = 2 * time.Second
)

// Client asks one API server.
type Client struct {
	objects dynamic.Interface
	kube    kubernetes.Interface

	mu    sync.Mutex
	views map[View]cache.SharedIndexInformer
	bells []chan<- struct{}
}

// View says which objects are kept in sight.
type View struct {
	Kind      object.Kind
	Namespace string // "" for all
	Name      string // "" for all
	Label     string // "" for all
	Field     string // a selector; "" for all
}

// Connect makes a client of a kubeconfig, or where path is "" of what a pod is given. It sends nothing.
func Connect(path string) (*Client, error) {
	var cfg *rest.Config
	var err error
	if path == "" {
		cfg, err = rest.InClusterConfig()
	} else {
		cfg, _, err = access.RestConfig(path, access.ReadTrusted)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", types.ErrNoAPI, err)
	}
	return over(cfg)
}

func over(cfg *rest.Config) (*Client, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent, cfg.QPS, cfg.Burst = Manager, 200, 400 // a review or two for each request to an edge node, and no loop gone wild
	cfg.WarningHandler = rest.NoWarnings{}
	base, err := rest.TransportFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("set up connection: %w", err)
	}
	web := &http.Client{Transport: base}
	objects, err := dynamic.NewForConfigAndClient(cfg, web)
	if err != nil {
		return nil, fmt.Errorf("set up client: %w", err)
	}
	kube, err := kubernetes.NewForConfigAndClient(cfg, web)
	if err != nil {
		return nil, fmt.Errorf("set up client: %w", err)
	}
	return &Client{objects: objects, kube: kube, views: map[View]cache.SharedIndexInformer{}}, nil
}

func resource(k object.Kind) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.Group, Version: k.Version, Resource: k.Resource}
}

func (c *Client) at(r object.Ref) dynamic.ResourceInterface {
	if r.Namespace == "" {
		return c.objects.Resource(resource(r.Kind))
	}
	return c.objects.Resource(resource(r.Kind)).Namespace(r.Namespace)
}

// within bounds one request, whose error says what was done.
func within(ctx context.Context, act string, r object.Ref, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, requestWithin)
	defer cancel()
	if err := do(ctx); err != nil {
		return fmt.Errorf("%s %s: %w", act, r, err)
	}
	return nil
}

// Get reads one object; nil where it does not exist.
func (c *Client) Get(ctx context.Context, r object.Ref) (found object.Object, err error) {
	err = within(ctx, "get", r, func(ctx context.Context) error {
		o, err := c.at(r).Get(ctx, r.Name, metav1.GetOptions{})
		if err == nil {
			found = o.Object
		}
		return access.UnlessGone(err)
	})
	return found, err
}

// List reads all objects of a view.
func (c *Client) List(ctx context.Context, v View) (found []object.Object, err error) {
	r := object.Ref{Kind: v.Kind, Namespace: v.Namespace}
	err = within(ctx, "list", r, func(ctx context.Context) error {
		list, err := c.at(r).List(ctx, v.options())
		if err != nil {
			return access.UnlessGone(err) // also a kind that is not there
		}
		for _, item := range list.Items {
			found = append(found, item.Object)
		}
		return nil
	})
	return found, err
}

func (v View) options() (o metav1.ListOptions) {
	o.LabelSelector, o.FieldSelector = v.Label, v.Field
	if v.Name != "" {
		o.FieldSelector = "metadata.name=" + v.Name
	}
	return o
}

// Apply makes the object be as o says, also against another one's word, and returns it as it is then; only whether
// that would be allowed is asked where dry is true.
func (c *Client) Apply(ctx context.Context, r object.Ref, o object.Object, dry bool) (now object.Object, err error) {
	data, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", r, err)
	}
	force := true
	options := metav1.PatchOptions{FieldManager: Manager, Force: &force}
	if dry {
		options.DryRun = []string{metav1.DryRunAll}
	}
	err = within(ctx, "apply", r, func(ctx context.Context) error {
		got, err := c.at(r).Patch(ctx, r.Name, ktypes.ApplyPatchType, data, options)
		if err == nil {
			now = got.Object
		}
		return err
	})
	return now, err
}

// Create makes an object that must not exist.
func (c *Client) Create(ctx context.Context, r object.Ref, o object.Object) error {
	return within(ctx, "create", r, func(ctx context.Context) error {
		_, err := c.at(r).Create(ctx, &unstructured.Unstructured{Object: o}, metav1.CreateOptions{FieldManager: Manager})
		return err
	})
}

// Update writes an object of the version that was read.
func (c *Client) Update(ctx context.Context, r object.Ref, o object.Object) error {
	return within(ctx, "update", r, func(ctx context.Context) error {
		_, err := c.at(r).Update(ctx, &unstructured.Unstructured{Object: o}, metav1.UpdateOptions{FieldManager: Manager})
		return err
	})
}

// Delete deletes the object, with what it owns; it succeeds where it does not exist. With a UID it deletes only
// the one that has it.
func (c *Client) Delete(ctx context.Context, r object.Ref, uid string) error {
	background := metav1.DeletePropagationBackground
	o := metav1.DeleteOptions{PropagationPolicy: &background}
	if uid != "" {
		o.Preconditions = access.Exactly(uid).Preconditions
	}
	return within(ctx, "delete", r, func(ctx context.Context) error {
		err := c.at(r).Delete(ctx, r.Name, o)
		if uid != "" && apierrors.IsConflict(err) {
			return nil // what has its name by now is another one
		}
		return access.UnlessGone(err)
	})
}

// Evict evicts a pod that has this UID; blocked is why that is not allowed now.
func (c *Client) Evict(ctx context.Context, r object.Ref, uid string) (blocked string, err error) {
	options := access.Exactly(uid)
	err = within(ctx, "evict", r, func(ctx context.Context) error {
		err := c.kube.PolicyV1().Evictions(r.Namespace).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: r.Name, Namespace: r.Namespace}, DeleteOptions: &options})
		if apierrors.IsTooManyRequests(err) {
			blocked = "is not evicted: " + err.Error()
			return nil
		}
		if apierrors.IsConflict(err) {
			return nil // what has its name by now is another one
		}
		return access.UnlessGone(err)
	})
	return blocked, err
}

// Approve approves a request for a certificate.
func (c *Client) Approve(ctx context.Context, r object.Ref) error {
	return within(ctx, "approve", r, func(ctx context.Context) error {
		api := c.kube.CertificatesV1().CertificateSigningRequests()
		csr, err := api.Get(ctx, r.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateApproved, Status: "True", Reason: "ZedkubeEdge", Message: "stream certificate of cloudcore",
		})
		_, err = api.UpdateApproval(ctx, r.Name, csr, metav1.UpdateOptions{FieldManager: Manager})
		return err
	})
}

// Caller is who has sent a request to a pod, as the API server knows him.
type Caller struct {
	Name, UID string
	Groups    []string
	Extra     map[string][]string
}

// Who returns whose token that is. known is false where it is nobody's.
func (c *Client) Who(ctx context.Context, token string) (who Caller, known bool, err error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	review, err = c.kube.AuthenticationV1().TokenReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return who, false, fmt.Errorf("review token: %w", err)
	}
	who = Caller{Name: review.Status.User.Username, UID: review.Status.User.UID, Groups: review.Status.User.Groups, Extra: map[string][]string{}}
	for name, values := range review.Status.User.Extra {
		who.Extra[name] = values
	}
	return who, review.Status.Authenticated, nil
}

// May reports whether somebody may do that with a subresource of a Node, and the API server's word on it.
func (c *Client) May(ctx context.Context, who Caller, node, verb, subresource string) (may bool, why string, err error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: who.Name, UID: who.UID, Groups: who.Groups, Extra: map[string]authorizationv1.ExtraValue{},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Version: "v1", Resource: "nodes", Subresource: subresource, Name: node,
		},
	}}
	for name, values := range who.Extra {
		review.Spec.Extra[name] = values
	}
	review, err = c.kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, "", fmt.Errorf("review access: %w", err)
	}
	return review.Status.Allowed, review.Status.Reason, nil
}

// Keep keeps the objects of these views in sight until ctx is done.
func (c *Client) Keep(ctx context.Context, views []View) {
	var running sync.WaitGroup
	for _, v := range views {
		at := c.at(object.Ref{Kind: v.Kind, Namespace: v.Namespace})
		of := func(o metav1.ListOptions) metav1.ListOptions {
			selects := v.options()
			o.LabelSelector, o.FieldSelector = selects.LabelSelector, selects.FieldSelector
			return o
		}
		informer := cache.NewSharedIndexInformer(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return at.List(ctx, of(o)) },
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return access.Overdue(ctx, of(o), at.Watch)
			},
		}, &unstructured.Unstructured{}, resync, cache.Indexers{})
		_ = informer.SetTransform(lean) // only of one that runs already it fails
		_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { c.ring() }, UpdateFunc: func(any, any) { c.ring() }, DeleteFunc: func(any) { c.ring() },
		})
		c.mu.Lock()
		c.views[v] = informer
		c.mu.Unlock()
		running.Go(func() { informer.RunWithContext(ctx) })
	}
	running.Wait()
}

// lean leaves out who wrote which field, which is the larger part of an object and is not read.
func lean(o any) (any, error) {
	if u, is := o.(*unstructured.Unstructured); is {
		u.SetManagedFields(nil)
	}
	return o, nil
}

// Notify has bell ring when something in sight changes.
func (c *Client) Notify(bell chan<- struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bells = append(c.bells, bell)
}

func (c *Client) ring() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, bell := range c.bells {
		select {
		case bell <- struct{}{}:
		default:
		}
	}
}

// Seen is all that is in sight, by reference; false until all views were listed.
func (c *Client) Seen() (map[object.Ref]object.Object, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.views) == 0 {
		return nil, false
	}
	all := map[object.Ref]object.Object{}
	for v, informer := range c.views {
		if !informer.HasSynced() {
			return nil, false
		}
		for _, item := range informer.GetStore().List() {
			if u, is := item.(*unstructured.Unstructured); is {
				o := object.Object(u.Object) // never changed again
				all[o.Ref(v.Kind)] = o
			}
		}
	}
	return all, true
}

// Elect runs for a Lease under the name identity until ctx is done. While it is held, lead runs with a context that
// ends when it is lost; a second time only after the first has returned. An error of lead gives the Lease up, for another
// one to lead, and is returned.
func (c *Client) Elect(ctx context.Context, namespace, lease, identity string, lead func(context.Context) error) error {
	for ctx.Err() == nil {
		var begun atomic.Bool
		var leads sync.WaitGroup
		var failed error
		term, end := context.WithCancel(ctx)
		leads.Add(1)
		e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: lease}, Client: c.kube.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
			},
			LeaseDuration: leaseFor, RenewDeadline: renewFor, RetryPeriod: retryAfter, Name: lease,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) {
					begun.Store(true)
					defer leads.Done()
					if failed = lead(ctx); failed != nil {
						end()
					}
				},
				OnStoppedLeading: func() {},
			},
			ReleaseOnCancel: true,
		})
		if err != nil {
			end()
			return fmt.Errorf("elect controller: %w", err)
		}
		e.Run(term)
		end()
		if !begun.Load() {
			continue
		}
		if leads.Wait(); failed != nil {
			return failed
		}
	}
	return nil
}
