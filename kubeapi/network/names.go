package network

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

// Where names of workloads are kept (docs/wire.md, "Names of workloads").
const (
	// AllocationsLabel marks the ConfigMaps with addresses.
	AllocationsLabel              = managedLabel + "=" + managedValue
	managedLabel, managedValue    = "eve.zededa.com/managed-by", "zedkube-ni-dns"
	instanceLabel, allocationsKey = "eve.zededa.com/network-instance", "allocations.json"
	dnsKey, dnsSuffix             = "eve-ni.server", ".server"
	hashAnnotation, namesManager  = "eve.zededa.com/ni-dns-hash", "zedkube-names"

	maxAllocations = 960 << 10 // bytes of allocations.json, in a ConfigMap of at most 1 MiB
)

// allocations is the text under allocationsKey.
type allocations[T any] struct {
	Version     int          `json:"version"`
	Allocations map[string]T `json:"allocations"`
}

// AllocationsOf is the row of a ConfigMap with allocations.
func AllocationsOf(m *corev1.ConfigMap) types.NetworkAllocations {
	doc := allocations[types.Allocation]{Version: 1}
	if text := m.Data[allocationsKey]; text != "" && json.Unmarshal([]byte(text), &doc) != nil {
		return types.NetworkAllocations{Why: allocationsKey + " cannot be read"}
	} else if doc.Version != 1 {
		return types.NetworkAllocations{Why: fmt.Sprintf("%s has version %d", allocationsKey, doc.Version)}
	}
	return types.NetworkAllocations{Network: m.Labels[instanceLabel], Entries: doc.Allocations}
}

// EditAllocations has edit change what a ConfigMap holds, for the version that edit saw,
// and again while another node is faster. One without entries is deleted. One without the
// label, or that cannot be read, is left alone, and that is an error.
func (c *Client) EditAllocations(ctx context.Context, name string, edit func(types.NetworkAllocations) types.NetworkAllocations) error {
	op := access.Operation{Op: "write addresses", Target: "configmap/" + access.Namespace + "/" + name}
	raced := func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
	return c.Write(ctx, op, "write addresses to ConfigMap "+name, func(ctx context.Context, conn *access.Connection) error {
		return retry.OnError(access.UntilDone, raced, func() error { return editAllocations(ctx, conn, name, edit) })
	})
}

func editAllocations(ctx context.Context, conn *access.Connection, name string, edit func(types.NetworkAllocations) types.NetworkAllocations) error {
	api := conn.Kube.CoreV1().ConfigMaps(access.Namespace)
	m, err := api.Get(ctx, name, metav1.GetOptions{})
	isNew := access.NotFound(err)
	switch {
	case isNew:
		m = &corev1.ConfigMap{}
	case err != nil:
		return err
	case m.Name != name:
		return access.ErrOther
	case m.Labels[managedLabel] != managedValue:
		return fmt.Errorf("it has no label %s, so it is not EVE's", AllocationsLabel)
	}
	row := AllocationsOf(m)
	if row.Why != "" {
		return errors.New(row.Why)
	}
	next, was, doc := edit(row), allocations[json.RawMessage]{}, allocations[any]{1, map[string]any{}}
	_ = json.Unmarshal([]byte(m.Data[allocationsKey]), &was) // AllocationsOf has read it
	for app, is := range next.Entries {
		if doc.Allocations[app] = is; reflect.DeepEqual(row.Entries[app], is) {
			doc.Allocations[app] = was.Allocations[app] // newer releases may say more in it
		}
	}
	data, err := json.Marshal(doc)
	labels, text := map[string]string{managedLabel: managedValue, instanceLabel: next.Network}, map[string]string{allocationsKey: string(data)}
	switch empty := len(next.Entries) == 0; {
	case err != nil || reflect.DeepEqual(next, row) || isNew && empty:
	case len(data) > maxAllocations:
		err = fmt.Errorf("%d workloads do not fit into it", len(next.Entries))
	case isNew:
		m = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Data: text}
		_, err = api.Create(ctx, m, metav1.CreateOptions{FieldManager: namesManager})
	case empty:
		err = access.UnlessGone(api.Delete(ctx, name, access.Exactly(string(m.UID), m.ResourceVersion)))
	default:
		patch := access.Values{"metadata": access.Values{"labels": labels}, "data": text}
		_, err = access.Merge(ctx, api, name, namesManager, access.ForVersion(m.ResourceVersion, patch))
	}
	return err
}

// DNSServerOf is the row of the ConfigMap of what is added to CoreDNS' configuration.
func DNSServerOf(m *corev1.ConfigMap) types.DNSServer {
	row := types.DNSServer{Text: m.Data[dnsKey]}
	for _, key := range slices.Sorted(maps.Keys(m.Data)) {
		if key != dnsKey && strings.HasSuffix(key, dnsSuffix) && servesInternal(m.Data[key]) {
			row.Clash = access.Cut(key, 300)
		}
	}
	return row
}

// servesInternal reports whether a part of a Corefile may serve the zone internal on port
// 53: CoreDNS does not start with two that do.
func servesInternal(text string) bool {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return unicode.IsSpace(r) || r == ',' || r == '{' })
	return slices.ContainsFunc(words, func(word string) bool {
		return strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(word, "dns://"), ":53"), ".") == "internal"
	})
}

// DNSRolloutOf is the row of CoreDNS' Deployment.
func DNSRolloutOf(d *appsv1.Deployment) types.DNSRollout {
	return types.DNSRollout{Hash: d.Spec.Template.Annotations[hashAnnotation]}
}

// PublishNames puts zedkube's part, "" for none, into CoreDNS' configuration, where other
// keys stay, and has CoreDNS restarted pod by pod if hash is not what it runs with.
func (c *Client) PublishNames(ctx context.Context, text, hash string) error {
	op := access.Operation{Op: "write names", Target: "configmap/" + types.NamespaceSystem + "/" + types.DNSConfigMap}
	return c.Write(ctx, op, "write names to ConfigMap "+types.DNSConfigMap, func(ctx context.Context, conn *access.Connection) error {
		api := conn.Kube.CoreV1().ConfigMaps(types.NamespaceSystem)
		data := access.Values{dnsKey: text}
		if text == "" {
			data[dnsKey] = nil
		}
		_, err := access.Merge(ctx, api, types.DNSConfigMap, namesManager, access.Values{"data": data})
		if access.NotFound(err) && text != "" {
			m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: types.DNSConfigMap}, Data: map[string]string{dnsKey: text}}
			_, err = api.Create(ctx, m, metav1.CreateOptions{FieldManager: namesManager})
		}
		if err := access.UnlessGone(err); err != nil {
			return err
		}
		template := access.Values{"template": access.AnnotationsPatch(access.Values{hashAnnotation: hash})}
		_, err = access.Merge(ctx, conn.Kube.AppsV1().Deployments(types.NamespaceSystem), types.DNSDeployment, namesManager, access.Values{"spec": template})
		return err
	})
}
