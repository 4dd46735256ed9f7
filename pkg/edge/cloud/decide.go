package cloud

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zedkube/zedkube/pkg/edge/object"
	"github.com/zedkube/zedkube/pkg/edge/settings"
)

const (
	maxCloudcores = 3
	// youngFor is how long after the creation of a pod its record in tunnelport may be without its address.
	youngFor = 20 * time.Second
	// lostFor is how long the node of a pod may be not Ready.
	lostFor = 20 * time.Second
	// madeWithin is how long cloudcore may run without its cloudcoresecret, which it makes when it starts.
	madeWithin = time.Minute
	// requestAgain is when a request that was refused is made again.
	requestAgain = time.Minute
)

// facts is everything a decision rests on.
type facts struct {
	now     time.Time
	seen    map[object.Ref]object.Object
	applied map[object.Ref]mark // by this process
	key     []byte              // of the request for a certificate that this process has made; nil for none
	crds    []object.Object
}

// mark is what was applied last, and what became of it.
type mark struct {
	wish    object.Object
	version string
}

// action is what to do about the facts, in this order.
type action struct {
	remove  []object.Object // each as it was seen
	kinds   []object.Kind   // of those
	request bool            // make a key, and ask for a certificate for block
	block   string
	approve bool
	stream  object.Object // the Secret with what was issued; nil to leave it
	update  object.Object // tunnelport without what is gone; nil to leave it
	record  object.Object // of who was asked to join, where there is none; nil to leave it
	apply   []wish
	again   time.Duration
	why     error // why something of it is not done
}

func (a *action) removes(r object.Ref, o object.Object) {
	if o != nil {
		a.remove, a.kinds = append(a.remove, o), append(a.kinds, r.Kind)
	}
}

// within has the next step come by then; 0 for no matter when.
func (a *action) within(d time.Duration) {
	if d > 0 && (a.again == 0 || d < a.again) {
		a.again = d
	}
}

// decide says what is missing or otherwise than it shall be. Without settings, or where they are off, it leaves
// everything as it is: to remove it is the command's.
func decide(f facts) (a action) {
	s, on, err := read(f.seen)
	if err != nil || !on {
		a.why = err
		return a
	}
	advertise, why := advertised(s, f.seen)
	replicas := cloudcores(s, f.seen)
	if f.seen[RefCA] == nil && f.seen[RefSettings].Annotation(caAnnotation) == "" && f.seen[refDeployment].Number("spec", "replicas") < 2 {
		replicas = 1 // the first one makes it: of several each makes its own, and only what was written last is valid
	}
	text, err := config(s, advertise)
	if err != nil {
		a.why = err
		return a
	}
	list := wishes(s, replicas, text, f.crds, f.names(&a))
	if why != "" {
		// Without an address neither the file nor the certificate of cloudcore can be right.
		list = slices.DeleteFunc(list, func(w wish) bool { return w.ref == refConfig })
	}
	certificate := f.decideStream(s, &a)
	if ca := f.seen[RefCA]; ca != nil && f.seen[RefSettings].Annotation(caAnnotation) == "" {
		list = append(list, wish{ref: RefSettings, is: recorded(ca)})
	}
	if why == "" && (certificate != "" || !s.CloudStream) {
		replaced := f.replaced()
		switch serving := f.seen[RefServing]; {
		case serving != nil && !serves(serving, advertise):
			a.removes(RefServing, serving)
			replaced = serving.UID()
		case serving == nil && f.seen[RefCA] != nil && lostCA(f.seen) == "": // else it would come to a new casecret
			pod, left := withoutServing(f.seen, replaced, f.now)
			replaced = cmp.Or(pod, replaced)
			a.within(left)
		}
		list = append(list, wish{ref: refDeployment, is: deployment(s, replicas, text, certificate, replaced)})
	}
	if !s.CloudStream {
		a.removes(refStream, f.seen[refStream])
		a.removes(refPath, f.seen[refPath])
	}
	if replicas < 2 {
		a.removes(refBudget, f.seen[refBudget])
	}
	var early bool
	if a.update, early = tunnels(f.seen, f.now); early && a.again == 0 {
		a.again = youngFor
	}
	f.leave(&a)
	for _, w := range list {
		if f.differs(w) {
			w.seen = f.seen[w.ref].Version()
			a.apply = append(a.apply, w)
		}
	}
	return a
}

// leave removes cloudcores from lost servers, so that others take their place. Kubernetes does that too, but not while
// more than half of all nodes are not Ready: with a cloudcore all of its edge nodes are.
func (f facts) leave(a *action) {
	for _, pod := range pods(f.seen) {
		since := notReady(f.seen[object.Ref{Kind: object.Node, Name: pod.Text("spec", "nodeName")}])
		if since.IsZero() {
			continue
		}
		left := lostFor - f.now.Sub(since)
		if left <= 0 {
			a.removes(object.Ref{Kind: object.Pod}, pod)
		}
		a.within(left)
	}
}

// withoutServing is the UID of a cloudcore that runs without cloudcoresecret, where all that run do and none is about to be
// replaced: it was removed after they had started, and only one that starts makes it again. While it is too early to
// say it is "", and left is how long.
func withoutServing(seen map[object.Ref]object.Object, replaced string, now time.Time) (uid string, left time.Duration) {
	if seen[RefServing] != nil {
		return "", 0
	}
	for _, pod := range pods(seen) {
		if pod.Annotation(replacedAnnotation) != replaced {
			return "", 0
		}
		for _, c := range pod.List("status", "containerStatuses") {
			since, err := time.Parse(time.RFC3339, c.Text("state", "running", "startedAt"))
			if c.Text("name") == Name && err == nil {
				uid, left = cmp.Or(uid, pod.UID()), max(left, madeWithin-now.Sub(since))
			}
		}
	}
	if left > 0 {
		uid = ""
	}
	return uid, left
}

// replaced is what the Deployment says last was replaced for its pods. What this process applied last is newer than
// what is in sight.
func (f facts) replaced() string {
	last := f.applied[refDeployment].wish
	if last == nil {
		last = f.seen[refDeployment]
	}
	return replacedOf(last)
}

func replacedOf(deployment object.Object) string {
	return deployment.Text("spec", "template", "metadata", "annotations", replacedAnnotation)
}

// read returns the settings, and whether KubeEdge is on.
func read(seen map[object.Ref]object.Object) (s settings.Settings, on bool, err error) {
	at := seen[RefSettings]
	if at == nil {
		return settings.Default(), false, nil
	}
	s, err = settings.Parse([]byte(at.Text("data", SettingsAt)))
	if err != nil {
		return s, false, fmt.Errorf("%s is left as it is: %w", RefSettings, err)
	}
	return s, s.Enabled, nil
}

// cloudcores is how many shall run. The tie-breaker takes none: one that waits for it would block every drain.
func cloudcores(s settings.Settings, seen map[object.Ref]object.Object) int {
	if !s.HA {
		return 1
	}
	return max(1, min(maxCloudcores, len(servers(seen, false))))
}

// recorded notes which casecret edge nodes trust.
func recorded(ca object.Object) object.Object {
	o := object.New(RefSettings)
	o["metadata"].(m)["annotations"] = m{caAnnotation: ca.UID()}
	return o
}

// names are those that were asked to join. Where there is no record yet, the edge nodes that there are go on.
func (f facts) names(a *action) []string {
	if f.seen[refNamespace] == nil {
		return nil
	}
	record, err := RecordOf(f.seen, f.now)
	if f.seen[RefNodes] == nil && err == nil {
		var data m
		if data, err = record.Data(); err == nil {
			a.record = RecordObject(data)
		}
	}
	a.why = errors.Join(a.why, err)
	return record.Names()
}

// differs reports that the object is missing, has changed since this process applied it, or that something else
// was applied. That a change is no change is up to the API server: it applies nothing then. One that is being deleted
// is made again when it is gone.
func (f facts) differs(w wish) bool {
	now, done := f.seen[w.ref], f.applied[w.ref]
	if now.Text("metadata", "deletionTimestamp") != "" {
		return false
	}
	return now == nil || done.version != now.Version() || !object.Same(done.wish, w.is)
}

// decideStream leads to a certificate of the stream and returns the present one, "" for none.
func (f facts) decideStream(s settings.Settings, a *action) string {
	secret, csr := f.seen[refStreamKey], f.seen[refRequest]
	_, why := stream(secret, s.EdgeBlock, f.now)
	certificate := ""
	if secret != nil {
		certificate = secret.Text("data", "stream.crt") + secret.Text("data", "streamCA.crt")
	}
	clients := f.seen[refClientCA].Text("data", "client-ca-file")
	issued := csr.Text("status", "certificate")
	switch {
	case !s.CloudStream:
		a.removes(refRequest, csr)
	case clients == "":
		a.why = fmt.Errorf("%s does not say by what the API server knows clients", refClientCA)
	case why == "":
		a.removes(refRequest, csr)
		if string(data(secret, "streamCA.crt")) != clients {
			a.stream = streamSecret(secret.Text("data", "stream.crt"), data(secret, "stream.key"), clients)
		}
	case csr == nil:
		a.request, a.block = true, s.EdgeBlock
	case refusedRequest(csr):
		a.why = fmt.Errorf("the request for the stream's certificate (%s) was refused", why)
		if a.again = requestAgain; f.now.Sub(created(csr)) > requestAgain {
			a.removes(refRequest, csr)
		}
	case !asksFor(csr, f.key): // of a controller before this one, whose key is gone
		a.removes(refRequest, csr)
	case issued != "":
		a.stream = streamSecret(issued, f.key, clients)
		a.removes(refRequest, csr)
		if _, still := stream(a.stream, s.EdgeBlock, f.now); still != "" {
			a.stream, a.why = nil, fmt.Errorf("the certificate that was issued for the stream does not serve: %s", still)
		}
	case csr.Condition("Approved") == "":
		a.approve = true
	}
	return certificate
}

func refusedRequest(csr object.Object) bool {
	return csr.Condition("Denied") != "" || csr.Condition("Failed") != ""
}

func created(o object.Object) time.Time {
	at, _ := time.Parse(time.RFC3339, o.Text("metadata", "creationTimestamp")) // zero is long ago
	return at
}

// record is what KubeEdge keeps of its tunnels.
type record struct {
	Ports map[string]int  `json:"ipTunnelPort"`
	Used  map[string]bool `json:"port"`
}

func tunnelsOf(at object.Object) (r record, err error) {
	if text := at.Annotation(tunnelRecord); text != "" {
		err = json.Unmarshal([]byte(text), &r)
	}
	return r, err
}

// tunnels is KubeEdge's record of tunnels without the cloudcores that are gone, which KubeEdge leaves there for
// good; nil to leave it. It is too early to say while a pod is young.
func tunnels(seen map[object.Ref]object.Object, now time.Time) (next object.Object, early bool) {
	at := seen[refTunnels]
	record, err := tunnelsOf(at)
	if err != nil || len(record.Ports) == 0 {
		return nil, false
	}
	live := map[string]bool{}
	for _, pod := range pods(seen) {
		ip := pod.Text("status", "podIP")
		if ip == "" || now.Sub(created(pod)) < youngFor {
			return nil, true
		}
		live[ip] = true
	}
	if len(live) == 0 {
		return nil, false
	}
	used, before := map[string]bool{}, len(record.Ports)
	for ip, port := range record.Ports {
		if !live[ip] {
			delete(record.Ports, ip)
			continue
		}
		used[fmt.Sprint(port)] = true
	}
	if len(record.Ports) == before && maps.Equal(used, record.Used) {
		return nil, false
	}
	record.Used = used
	text, err := json.Marshal(record)
	changed, errPlain := object.Plain(at)
	if err != nil || errPlain != nil {
		return nil, false // a copy of what was read as JSON
	}
	next = changed.(m)
	next["metadata"].(m)["annotations"].(m)[tunnelRecord] = string(text)
	return next, false
}

// pods are those of cloudcore.
func pods(seen map[object.Ref]object.Object) []object.Object {
	return slices.DeleteFunc(allPods(seen), func(o object.Object) bool { return o.Text("metadata", "labels", "kubeedge") != Name })
}

// allPods are those of the controller and the path, too.
func allPods(seen map[object.Ref]object.Object) (list []object.Object) {
	for r, o := range seen {
		if r.Kind == object.Pod && o.Text("metadata", "deletionTimestamp") == "" {
			list = append(list, o)
		}
	}
	slices.SortFunc(list, func(a, b object.Object) int { return strings.Compare(a.Name(), b.Name()) })
	return list
}
