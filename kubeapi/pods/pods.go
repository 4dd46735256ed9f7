package pods

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedapps "k8s.io/client-go/kubernetes/typed/apps/v1"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/kubectl/pkg/drain"
	"k8s.io/utils/ptr"

	"github.com/zedkube/zedkube/kubeapi/access"
	"github.com/zedkube/zedkube/types"
)

// AppPodsNow lists the pods of the applications, as they are now.
func (c *Client) AppPodsNow(ctx context.Context) ([]types.Pod, error) {
	return access.Read(ctx, c.Session, "list pods of the applications", func(ctx context.Context, conn *access.Connection) ([]types.Pod, error) {
		list, err := access.Whole(conn.Kube.CoreV1().Pods(access.Namespace).List(ctx, metav1.ListOptions{}))
		if err != nil {
			return nil, err
		}
		var pods []types.Pod
		for _, p := range list.Items {
			pods = append(pods, AppPodOf(&p))
		}
		return pods, nil
	})
}

// PodNow returns a pod as it is now, with its containers. Its error wraps types.ErrNoLog where
// there is no such pod.
func (c *Client) PodNow(ctx context.Context, namespace, name string) (types.Pod, error) {
	return access.Read(ctx, c.Session, "read pod "+namespace+"/"+name, func(ctx context.Context, conn *access.Connection) (types.Pod, error) {
		p, err := conn.Kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case access.NotFound(err):
			return types.Pod{}, fmt.Errorf("%w: there is no such pod", types.ErrNoLog)
		case err != nil:
			return types.Pod{}, err
		case p.Name != name || p.Namespace != namespace:
			return types.Pod{}, access.ErrOther
		}
		return AppPodOf(p), nil
	})
}

// ForceDeletePod deletes this very pod, not a namesake, with grace 0: its object
// goes without waiting for the kubelet, which may still run it. It returns nil
// when the pod is gone.
func (c *Client) ForceDeletePod(ctx context.Context, pod types.Pod) error {
	op := access.Operation{Op: "force-delete pod", Target: "pod/" + pod.Key()}
	return access.DeleteExactly(ctx, c.Session, op, "delete pod "+pod.Key()+" by force", pod.Name, pod.UID, new(int64),
		func(conn *access.Connection) access.Objects[*corev1.Pod] {
			return conn.Kube.CoreV1().Pods(pod.Namespace)
		})
}

// PlanEvict asks what Evict would be answered, and evicts nothing. Its errors
// are those of Evict.
func (c *Client) PlanEvict(ctx context.Context, pod types.Pod) error {
	return c.evict(access.Unrecorded(ctx), "dry-run the eviction of", pod, metav1.DryRunAll)
}

// PodsToEvict returns, from a fresh list, the pods that a drain of node has to
// evict. The filters are those of kubectl drain with --force, --ignore-daemonsets
// and --delete-emptydir-data, in its order, and one of ours:
//
//	deleted        skips no pod: a pod that is being deleted is to be waited for
//	daemon set     skips the pods of a daemon set that exists
//	mirror pod     skips what the kubelet runs from its own files
//	local storage  skips no pod: what is in an emptyDir is lost
//	unreplicated   skips no pod: one without a controller does not come back
//	leaveStorage   skips the pods that keep volumes usable meanwhile
func (c *Client) PodsToEvict(ctx context.Context, node string) ([]types.Pod, error) {
	return access.Read(ctx, c.Session, "list pods to evict from node "+node, func(ctx context.Context, conn *access.Connection) ([]types.Pod, error) {
		from, err := listsOfNode(ctx, conn, node)
		if err != nil {
			return nil, err
		}
		kubectl := drain.Helper{
			Ctx:                 ctx,
			Client:              from,
			Force:               true,
			GracePeriodSeconds:  -1,
			IgnoreAllDaemonSets: true,
			DeleteEmptyDirData:  true,
			AdditionalFilters:   []drain.PodFilter{leaveStorage},
			Out:                 io.Discard,
			ErrOut:              io.Discard,
		}
		chosen, errs := kubectl.GetPodsForDeletion(node)
		if len(errs) > 0 {
			return nil, errors.Join(errs...)
		}
		var pods []types.Pod
		for _, p := range chosen.Pods() {
			pods = append(pods, PodOf(&p))
		}
		return pods, nil
	})
}

// nodeLists answers the filters of kubectl, which ask for the pods of a node and
// for the daemon set of each of their pods, from one list of each.
type nodeLists struct {
	kubernetes.Interface
	pods listedPods
	sets listedSets
}

// CoreV1 implements kubernetes.Interface.
func (l *nodeLists) CoreV1() typedcore.CoreV1Interface { return l.pods }

// AppsV1 implements kubernetes.Interface.
func (l *nodeLists) AppsV1() typedapps.AppsV1Interface { return l.sets }

type listedPods struct {
	typedcore.CoreV1Interface
	typedcore.PodInterface
	list *corev1.PodList
}

func (l listedPods) Pods(string) typedcore.PodInterface { return l }

func (l listedPods) List(context.Context, metav1.ListOptions) (*corev1.PodList, error) {
	return l.list, nil
}

type listedSets struct {
	typedapps.AppsV1Interface
	typedapps.DaemonSetInterface
	list      []appsv1.DaemonSet
	namespace string
}

func (l listedSets) DaemonSets(namespace string) typedapps.DaemonSetInterface {
	l.namespace = namespace
	return l
}

func (l listedSets) Get(_ context.Context, name string, _ metav1.GetOptions) (*appsv1.DaemonSet, error) {
	for i, s := range l.list {
		if s.Namespace == l.namespace && s.Name == name {
			return &l.list[i], nil
		}
	}
	return nil, apierrors.NewNotFound(appsv1.Resource("daemonsets"), name)
}

// listsOfNode lists the pods on node, and the daemon sets if one of the pods is of
// one.
func listsOfNode(ctx context.Context, conn *access.Connection, node string) (*nodeLists, error) {
	l := &nodeLists{Interface: conn.Kube, pods: listedPods{list: &corev1.PodList{}}}
	ofSet := false
	err := access.PodsOn(ctx, conn, node, func(p *corev1.Pod) {
		l.pods.list.Items = append(l.pods.list.Items, *p)
		owner := metav1.GetControllerOf(p)
		ofSet = ofSet || owner != nil && owner.Kind == "DaemonSet"
	})
	if err != nil || !ofSet {
		return l, err
	}
	sets, err := access.Whole(conn.Kube.AppsV1().DaemonSets("").List(ctx, metav1.ListOptions{}))
	if err != nil {
		return nil, fmt.Errorf("list daemon sets: %w", err)
	}
	l.sets.list = sets.Items
	return l, nil
}

// leaveStorage leaves alone the pods without which volumes can neither be
// detached from this node nor attached to another.
func leaveStorage(p corev1.Pod) drain.PodDeleteStatus {
	switch p.Labels[access.LabelApp] {
	case "csi-attacher", "csi-provisioner",
		"longhorn-admission-webhook", "longhorn-conversion-webhook", "longhorn-driver-deployer":
		return drain.MakePodDeleteStatusSkip()
	}
	return drain.MakePodDeleteStatusOkay()
}

// Evict asks once for the eviction of this very pod, not of a namesake. It
// returns nil when the eviction is accepted or the pod is gone, and an error
// that wraps types.ErrDisruptionBudget when it is refused for now (429).
func (c *Client) Evict(ctx context.Context, pod types.Pod) error {
	op := access.Operation{Op: "evict", Target: "pod/" + pod.Key()}
	return c.Record(ctx, op, func(ctx context.Context) error { return c.evict(ctx, "evict", pod) })
}

func (c *Client) evict(ctx context.Context, act string, pod types.Pod, dryRun ...string) error {
	eviction := &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{DryRun: dryRun},
	}
	if pod.UID != "" {
		eviction.DeleteOptions.Preconditions = access.Exactly(pod.UID).Preconditions
	}
	err := c.Verb(ctx, func(ctx context.Context, conn *access.Connection) error {
		err := conn.Kube.PolicyV1().Evictions(pod.Namespace).Evict(ctx, eviction)
		switch {
		case apierrors.IsConflict(err):
			// Either the pod has a namesake by now or somebody else changed it.
			if gone, getErr := replacedPod(ctx, conn, pod); getErr == nil && gone {
				return nil
			}
		case refused(err):
			return fmt.Errorf("%w: %w", types.ErrDisruptionBudget, err)
		}
		return access.UnlessGone(err)
	})
	if err != nil {
		return fmt.Errorf("%s pod %s: %w", act, pod.Key(), err)
	}
	return nil
}

// refused tells the 429 of a budget, or of a webhook that stands in for one,
// from the bare 429 of an overloaded API server.
func refused(err error) bool {
	return apierrors.IsTooManyRequests(err) &&
		!apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// replacedPod reports that the pod does not exist any more under its UID.
func replacedPod(ctx context.Context, conn *access.Connection, pod types.Pod) (bool, error) {
	now, err := conn.Kube.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if access.NotFound(err) {
		return true, nil
	}
	return err == nil && now.Name == pod.Name && string(now.UID) != pod.UID, err
}

// Client has the verbs on pods.
type Client struct{ *access.Session }

// VolumeUsers returns, from a fresh list, the pods on node that have not ended
// and use claims, by the PersistentVolumes that those are bound to. A claim that
// is gone, or bound to nothing, is left out.
func (c *Client) VolumeUsers(ctx context.Context, node string) (map[string][]types.Pod, error) {
	act := "look for the pods that use volumes on node " + node
	return access.Read(ctx, c.Session, act, func(ctx context.Context, conn *access.Connection) (map[string][]types.Pod, error) {
		of := map[string][]types.Pod{} // by claim, as namespace/name
		err := access.PodsOn(ctx, conn, node, func(p *corev1.Pod) {
			for _, claim := range access.ClaimsOf(p) {
				of[claim] = append(of[claim], PodOf(p))
			}
		})
		if err != nil {
			return nil, err
		}
		users := map[string][]types.Pod{}
		for claim, pods := range of {
			volume, err := volumeOf(ctx, conn, pods[0].Namespace, claim[len(pods[0].Namespace)+1:])
			if err != nil {
				return nil, err
			}
			if volume != "" {
				users[volume] = pods
			}
		}
		return users, nil
	})
}

// volumeOf is the PersistentVolume that a claim is bound to, "" for none.
func volumeOf(ctx context.Context, conn *access.Connection, namespace, name string) (string, error) {
	claim, err := conn.Kube.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case access.NotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("get claim %s/%s: %w", namespace, name, err)
	case claim.Name != name || claim.Namespace != namespace:
		return "", fmt.Errorf("get claim %s/%s: the answer is not that claim", namespace, name)
	}
	return claim.Spec.VolumeName, nil
}

// UnschedulableText bounds what a row says of a scheduler's reasons, which name
// nodes by the dozen.
const UnschedulableText = 500

// AppPodOf is the row of a Pod of an application, which says more than PodOf.
func AppPodOf(p *corev1.Pod) types.Pod {
	row := PodOf(p)
	row.Containers = containersOf(p)
	var claims []string
	for _, v := range p.Spec.Volumes {
		claims = append(claims, access.ClaimOf(p, v))
	}
	row.Claims = access.Sorted(claims)
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable && row.NodeName == "" {
			row.Unschedulable = access.Cut(c.Message, UnschedulableText)
		}
	}
	return row
}

// networksText bounds the networks of a row: what they ask of zedrouter is one message.
const networksText = 8 << 10

// OwnPodOf is the row of a Pod of this node. A Deployment names its ReplicaSet after
// itself and the hash of the template, so that nobody has to ask for the ReplicaSet.
func OwnPodOf(p *corev1.Pod) types.Pod {
	row := PodOf(p)
	row.Networks = access.Cut(p.Annotations["k8s.v1.cni.cncf.io/networks"], networksText)
	hash := p.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	if name, ok := strings.CutSuffix(row.Owner.Name, "-"+hash); ok && hash != "" && row.Owner.Kind == types.KindReplicaSet {
		row.Deployment = name
	}
	return row
}

// containersOf lists those of the spec: a status comes only with the kubelet.
func containersOf(p *corev1.Pod) []types.Container {
	var rows []types.Container
	add := func(c corev1.Container, statuses []corev1.ContainerStatus) {
		row := types.Container{Name: c.Name}
		i := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == c.Name })
		if i >= 0 {
			fill(&row, statuses[i])
		}
		rows = append(rows, row)
	}
	for _, c := range p.Spec.InitContainers {
		add(c, p.Status.InitContainerStatuses)
	}
	for _, c := range p.Spec.Containers {
		add(c, p.Status.ContainerStatuses)
	}
	return rows
}

// fill says of a container that waits to be started again what ran last, as a
// kubelet gives out the log of that.
func fill(row *types.Container, s corev1.ContainerStatus) {
	row.Restarts = s.RestartCount
	last := runOf(s.LastTerminationState.Terminated)
	switch {
	case s.State.Running != nil:
		row.Now, row.Last = types.ContainerRun{ID: s.ContainerID, Started: s.State.Running.StartedAt.Time}, last
	case s.State.Terminated != nil:
		row.Now, row.Last = runOf(s.State.Terminated), last
	default:
		row.Now = last
		if s.State.Waiting != nil {
			row.Waiting = s.State.Waiting.Reason
		}
	}
}

// runOf is zero for nil.
func runOf(t *corev1.ContainerStateTerminated) types.ContainerRun {
	if t == nil {
		return types.ContainerRun{}
	}
	return types.ContainerRun{
		ID: t.ContainerID, Started: t.StartedAt.Time, Finished: t.FinishedAt.Time, ExitCode: t.ExitCode, Reason: t.Reason,
	}
}

// PodOf is the row of a Pod.
func PodOf(p *corev1.Pod) types.Pod {
	row := types.Pod{
		Namespace: p.Namespace,
		Name:      p.Name,
		UID:       string(p.UID),
		NodeName:  p.Spec.NodeName,
		Phase:     types.PodPhase(p.Status.Phase),
		IP:        p.Status.PodIP,
		Created:   p.CreationTimestamp.Time,
		Deleted:   ptr.Deref(p.DeletionTimestamp, metav1.Time{}).Time,
		Owner:     access.OwnerOf(p),
		App:       p.Labels[access.LabelApp],
		AppDomain: p.Labels[access.LabelAppDomain],
		VMI:       p.Labels[access.LabelVMI],
		Reason:    p.Status.Reason,
	}
	row.Part, row.Version = systemPart(p)
	for _, s := range p.Status.ContainerStatuses {
		row.RestartCount += s.RestartCount
		if last := s.LastTerminationState.Terminated; s.RestartCount > 0 && last != nil && last.FinishedAt.After(row.RestartedAt) {
			row.RestartedAt = last.FinishedAt.Time
		}
	}
	return row
}

// systemPart is which part of the system a pod is, and of what version by the tag of
// its image. The pods on the own node are watched anyway.
func systemPart(p *corev1.Pod) (part, version string) {
	switch {
	case p.Namespace == types.NamespaceKubeVirt && p.Labels["kubevirt.io"] == "virt-handler":
		part = types.PartKubeVirt
	case p.Namespace == types.NamespaceLonghorn && p.Labels[access.LabelApp] == "longhorn-manager":
		part = types.PartLonghorn
	case p.Namespace == metav1.NamespaceSystem && p.Labels[access.LabelApp] == "multus":
		part = types.PartMultus
	}
	if part == "" || len(p.Spec.Containers) == 0 {
		return "", ""
	}
	return part, tagOf(p.Spec.Containers[0].Image)
}

// DeployedVersionOf is the row of a Deployment.
func DeployedVersionOf(d *appsv1.Deployment) types.DeployedVersion {
	if c := d.Spec.Template.Spec.Containers; len(c) > 0 {
		return types.DeployedVersion{Version: tagOf(c[0].Image)}
	}
	return types.DeployedVersion{}
}

// tagOf is the tag of an image, "" where it has none or is longer than a version.
func tagOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	_, name, ok := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	if !ok || len(name) > access.VersionLength {
		return ""
	}
	return name
}
