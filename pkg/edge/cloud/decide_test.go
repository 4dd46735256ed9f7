package cloud

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zedkube/zedkube/pkg/edge/object"
	"github.com/zedkube/zedkube/pkg/edge/settings"
)

var now = time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)

// world is what a row of the table is about: a cluster where all is as it shall be.
type world struct {
	facts
	t *testing.T
}

func (w *world) put(r object.Ref, content m) object.Object {
	o := object.New(r).With(content)
	meta := o["metadata"].(m)
	meta["uid"], meta["resourceVersion"] = "uid of "+r.Name, "1"
	w.seen[r] = o
	return o
}

func (w *world) set(change func(*settings.Settings)) {
	s := settings.Default()
	s.Enabled = true
	change(&s)
	text, err := s.Text()
	if err != nil {
		w.t.Fatal(err)
	}
	o := w.put(RefSettings, m{"data": m{SettingsAt: text}})
	o["metadata"].(m)["annotations"] = m{caAnnotation: "uid of casecret"}
}

func (w *world) server(name, ip string) {
	o := w.put(object.Ref{Kind: object.Node, Name: name}, m{"status": m{"addresses": l{m{"type": "InternalIP", "address": ip}}}})
	o["metadata"].(m)["labels"] = m{serverRole: "true"}
}

// certificate is one of that key, for a time around now.
func certificate(t *testing.T, key *ecdsa.PrivateKey, addresses []net.IP, from, until time.Time) string {
	t.Helper()
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: until, IPAddresses: addresses}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: certificatePEM, Bytes: der}))
}

// whole is the world in which nothing is to be done.
func whole(t *testing.T) *world {
	t.Helper()
	w := &world{facts{now: now, seen: map[object.Ref]object.Object{}, applied: map[object.Ref]mark{}}, t}
	var err error
	if w.crds, err = Definitions(); err != nil {
		t.Fatal(err)
	}
	if w.key, err = newKey(); err != nil {
		t.Fatal(err)
	}
	w.set(func(*settings.Settings) {})
	w.server("node-1", "10.0.0.1")
	w.server("node-2", "10.0.0.2")
	w.put(RefCA, m{})
	w.put(refClientCA, m{"data": m{"client-ca-file": "the authority"}})
	w.stream(now.Add(-time.Hour), now.Add(365*24*time.Hour))
	w.serves("10.0.0.1", "10.0.0.2")
	w.settle()
	return w
}

func (w *world) stream(from, until time.Time) {
	key, err := readKey(w.key)
	if err != nil {
		w.t.Fatal(err)
	}
	all, err := addressesIn(settings.Block)
	if err != nil {
		w.t.Fatal(err)
	}
	secret := streamSecret(certificate(w.t, key, all, from, until), w.key, "the authority")
	w.put(refStreamKey, m{"data": secret["data"]})
}

func (w *world) serves(addresses ...string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	var list []net.IP
	for _, a := range addresses {
		list = append(list, net.ParseIP(a))
	}
	text, _ := base64.StdEncoding.DecodeString(certificate(w.t, key, list, now, now.Add(time.Hour)))
	block, _ := pem.Decode(text)
	w.put(RefServing, m{"data": m{"cloudcoredata": base64.StdEncoding.EncodeToString(block.Bytes)}})
}

// settle applies what is to be applied, as the API server would.
func (w *world) settle() {
	for _, wish := range decide(w.facts).apply {
		if wish.ref == RefSettings {
			continue
		}
		is, err := object.Plain(wish.is)
		if err != nil {
			w.t.Fatal(err)
		}
		o := object.Object(is.(m))
		o["metadata"].(m)["resourceVersion"], o["metadata"].(m)["uid"] = "1", "uid of "+wish.ref.Name
		w.seen[wish.ref], w.applied[wish.ref] = o, mark{wish.is, "1"}
	}
}

// asked has a request for a certificate, made with a key.
func (w *world) asked(key []byte, status m) {
	csr, err := request(key, settings.Block)
	if err != nil {
		w.t.Fatal(err)
	}
	w.put(refRequest, m{"spec": csr["spec"], "status": status})
}

// told is an action in words.
func told(a action) string {
	var words []string
	for i, o := range a.remove {
		words = append(words, "remove "+o.Ref(a.kinds[i]).String())
	}
	if a.request {
		words = append(words, "request")
	}
	if a.approve {
		words = append(words, "approve")
	}
	if a.stream != nil {
		words = append(words, "store")
	}
	if a.update != nil {
		words = append(words, "update "+a.update.Annotation(tunnelRecord))
	}
	for _, w := range a.apply {
		words = append(words, "apply "+w.ref.String())
	}
	if a.why != nil {
		words = append(words, "why: "+a.why.Error())
	}
	return strings.Join(words, ", ")
}

func TestDecide(t *testing.T) {
	const deployment = "apply Deployment kubeedge/cloudcore"
	approved := m{"conditions": l{m{"type": "Approved", "status": "True"}}}
	pod := func(w *world, name, ip string, age time.Duration) {
		o := w.put(object.Ref{Kind: object.Pod, Namespace: Where, Name: name}, m{"status": m{"podIP": ip}})
		o["metadata"].(m)["labels"] = podLabels()
		o["metadata"].(m)["creationTimestamp"] = now.Add(-age).Format(time.RFC3339)
	}
	// runs has cloudcore run for so long, in a pod of the present Deployment.
	runs := func(w *world, name string, since time.Duration) {
		pod(w, name, "10.42.0.9", time.Hour)
		o := w.seen[object.Ref{Kind: object.Pod, Namespace: Where, Name: name}]
		o["metadata"].(m)["annotations"] = m{replacedAnnotation: replacedOf(w.seen[refDeployment])}
		o["status"].(m)["containerStatuses"] = l{
			m{"name": "certificates", "state": m{"running": m{"startedAt": now.Add(-time.Hour).Format(time.RFC3339)}}},
			m{"name": Name, "state": m{"running": m{"startedAt": now.Add(-since).Format(time.RFC3339)}}},
		}
	}
	lose := func(w *world, ago time.Duration) {
		w.seen[object.Ref{Kind: object.Pod, Namespace: Where, Name: "a"}]["spec"] = m{"nodeName": "node-2"}
		node := w.seen[object.Ref{Kind: object.Node, Name: "node-2"}]
		node["status"].(m)["conditions"] = l{m{"type": "Ready", "status": "Unknown", "lastTransitionTime": now.Add(-ago).Format(time.RFC3339)}}
	}
	tunnels := func(w *world, record string) {
		o := w.put(refTunnels, m{})
		o["metadata"].(m)["annotations"] = m{tunnelRecord: record}
	}
	for name, row := range map[string]struct {
		change func(w *world)
		want   string
	}{
		"nothing where all is as it shall be":   {func(*world) {}, ""},
		"nothing without settings":              {func(w *world) { delete(w.seen, RefSettings); delete(w.seen, RefRole) }, ""},
		"nothing while it is off":               {func(w *world) { w.set(func(s *settings.Settings) { s.Enabled = false }); delete(w.seen, RefRole) }, ""},
		"nothing by settings that are not read": {func(w *world) { w.put(RefSettings, m{"data": m{SettingsAt: "{"}}); delete(w.seen, RefRole) }, "why: ConfigMap kubeedge/zedkube-edge is left as it is: read settings: unexpected EOF"},
		"what is missing is made":               {func(w *world) { delete(w.seen, RefRole) }, "apply ClusterRole cloudcore"},
		"what has changed is applied": {func(w *world) {
			w.seen[refConfig]["metadata"].(m)["resourceVersion"] = "2"
		}, "apply ConfigMap kubeedge/cloudcore"},
		"what is being deleted is waited for": {func(w *world) {
			w.seen[refConfig]["metadata"].(m)["resourceVersion"], w.seen[refConfig]["metadata"].(m)["deletionTimestamp"] = "2", "2026-11-27T10:00:00Z"
		}, ""},
		"the authority is recorded once": {func(w *world) { delete(w.seen[RefSettings]["metadata"].(m), "annotations") }, "apply ConfigMap kubeedge/zedkube-edge"},
		"a certificate is requested where there is none, and cloudcore waits for it": {func(w *world) {
			delete(w.seen, refStreamKey)
			delete(w.seen, refDeployment)
		}, "request"},
		"a certificate of which two thirds are over is renewed, and still used": {func(w *world) {
			w.stream(now.Add(-20*24*time.Hour), now.Add(9*24*time.Hour))
			w.settle()
		}, "request"},
		"a certificate of which less is over is not": {func(w *world) {
			w.stream(now.Add(-19*24*time.Hour), now.Add(11*24*time.Hour))
			w.settle()
		}, ""},
		"a certificate that is broken is replaced": {func(w *world) { w.seen[refStreamKey]["data"].(m)["stream.key"] = "" }, "request"},
		"a certificate for another block is replaced, and until then used": {func(w *world) {
			w.set(func(s *settings.Settings) { s.EdgeBlock = "100.127.253.0/24" })
		}, "request"},
		"another authority of clients reaches the stream": {func(w *world) {
			w.put(refClientCA, m{"data": m{"client-ca-file": "another authority"}})
		}, "store"},
		"without one there is no request": {func(w *world) {
			delete(w.seen, refClientCA)
			delete(w.seen, refStreamKey)
			delete(w.seen, refDeployment)
		}, "why: ConfigMap kube-system/extension-apiserver-authentication does not say by what the API server knows clients"},
		"a request of this controller is approved": {func(w *world) { delete(w.seen, refStreamKey); w.asked(w.key, m{}) }, "approve"},
		"a request that is approved is waited for": {func(w *world) { delete(w.seen, refStreamKey); w.asked(w.key, approved) }, ""},
		"a request of another controller is removed": {func(w *world) {
			delete(w.seen, refStreamKey)
			other, _ := newKey()
			w.asked(other, m{})
		}, "remove CertificateSigningRequest zedkube-cloudstream"},
		"a request that is no longer needed is removed": {func(w *world) { w.asked(w.key, m{}) }, "remove CertificateSigningRequest zedkube-cloudstream"},
		"what is issued is stored": {func(w *world) {
			issued := w.seen[refStreamKey].Text("data", "stream.crt")
			delete(w.seen, refStreamKey)
			w.asked(w.key, m{"conditions": approved["conditions"], "certificate": issued})
		}, "remove CertificateSigningRequest zedkube-cloudstream, store"},
		"what is issued and does not serve is not": {func(w *world) {
			delete(w.seen, refStreamKey)
			w.asked(w.key, m{"conditions": approved["conditions"], "certificate": "eA=="})
		}, "remove CertificateSigningRequest zedkube-cloudstream, why: the certificate that was issued for the stream does not serve: it cannot be read"},
		"a request that was refused is made again a minute later": {func(w *world) {
			delete(w.seen, refStreamKey)
			w.asked(w.key, m{"conditions": l{m{"type": "Denied", "status": "True"}}})
		}, "remove CertificateSigningRequest zedkube-cloudstream, why: the request for the stream's certificate (there is none) was refused"},
		"an address that cloudcore's certificate lacks: it goes, and cloudcore restarts": {func(w *world) { w.serves("10.0.0.1") }, "remove Secret kubeedge/cloudcoresecret, " + deployment},
		"a Deployment in sight that is older than what was applied restarts nothing": {func(w *world) {
			w.serves("10.0.0.1")
			w.settle()
			w.serves("10.0.0.1", "10.0.0.2")
			template := w.seen[refDeployment].At("spec", "template", "metadata", "annotations").(m)
			delete(template, replacedAnnotation)
		}, ""},
		"cloudcoresecret is gone: cloudcore, which makes it, restarts": {func(w *world) {
			delete(w.seen, RefServing)
			runs(w, "a", time.Minute)
			runs(w, "b", time.Minute)
			pod(w, "c", "", time.Hour) // it does not run
		}, deployment},
		"not while one has just started": {func(w *world) {
			delete(w.seen, RefServing)
			runs(w, "a", time.Minute)
			runs(w, "b", 59*time.Second)
		}, ""},
		"not while none runs": {func(w *world) { delete(w.seen, RefServing); pod(w, "a", "", time.Hour) }, ""},
		"not while they are being replaced": {func(w *world) {
			runs(w, "a", time.Minute)
			w.serves("10.0.0.1")
			w.settle()
			delete(w.seen, RefServing)
		}, ""},
		"not while casecret is gone, of which it would make another one": {func(w *world) {
			delete(w.seen, RefServing)
			delete(w.seen, RefCA)
			runs(w, "a", time.Minute)
		}, ""},
		"a server more is one address more": {
			func(w *world) { w.server("node-3", "10.0.0.3") },
			"remove Secret kubeedge/cloudcoresecret, apply ConfigMap kubeedge/cloudcore, " + deployment,
		},
		"a certificate of cloudcore that cannot be read is left": {func(w *world) { w.put(RefServing, m{"data": m{"cloudcoredata": "eA=="}}) }, ""},
		"no server, no address: what has one is left": {func(w *world) {
			for r := range w.seen {
				if r.Kind == object.Node {
					delete(w.seen, r)
				}
			}
			delete(w.seen, refConfig)
			delete(w.seen, refDeployment)
		}, ""},
		"a load balancer without an address: the Service comes first": {func(w *world) {
			w.set(func(s *settings.Settings) { s.ServiceType = settings.LoadBalancer })
		}, "apply Service kubeedge/cloudcore"},
		"more cloudcores have a budget": {
			func(w *world) { w.set(func(s *settings.Settings) { s.HA = true }) },
			"apply PodDisruptionBudget kubeedge/cloudcore, " + deployment,
		},
		"one makes the authority before there are several": {func(w *world) {
			w.set(func(s *settings.Settings) { s.HA = true })
			delete(w.seen, RefCA)
			delete(w.seen[RefSettings]["metadata"].(m), "annotations")
		}, ""},
		"several go on when it is lost, and somebody says that another one is right": {func(w *world) {
			w.set(func(s *settings.Settings) { s.HA = true })
			w.settle()
			delete(w.seen, RefCA)
			delete(w.seen[RefSettings]["metadata"].(m), "annotations")
		}, ""},
		"several go on when it is lost": {func(w *world) {
			w.set(func(s *settings.Settings) { s.HA = true })
			delete(w.seen, RefCA)
		}, "apply PodDisruptionBudget kubeedge/cloudcore, " + deployment},
		"one has none": {func(w *world) { w.put(refBudget, m{}) }, "remove PodDisruptionBudget kubeedge/cloudcore"},
		"without a stream no Service of it": {
			func(w *world) { w.set(func(s *settings.Settings) { s.CloudStream = false }) },
			"remove Service kubeedge/cloudcore-stream, remove DaemonSet kubeedge/zedkube-edge-path, apply ConfigMap kubeedge/cloudcore, apply Service kubeedge/cloudcore, " + deployment,
		},
		"cloudcore leaves a server that is lost": {func(w *world) { pod(w, "a", "10.42.0.9", time.Hour); lose(w, 20*time.Second) }, "remove Pod kubeedge/a"},
		"and not too early":                      {func(w *world) { pod(w, "a", "10.42.0.9", time.Hour); lose(w, 19*time.Second) }, ""},
		"a tunnel of a cloudcore that is gone is taken from the record": {func(w *world) {
			pod(w, "a", "10.42.0.9", time.Hour)
			tunnels(w, `{"ipTunnelPort":{"10.42.0.8":10351,"10.42.0.9":10352},"port":{"10351":true,"10352":true}}`)
		}, `update {"ipTunnelPort":{"10.42.0.9":10352},"port":{"10352":true}}`},
		"not while a pod is young": {func(w *world) {
			pod(w, "a", "10.42.0.9", time.Hour)
			pod(w, "b", "10.42.0.10", time.Second)
			tunnels(w, `{"ipTunnelPort":{"10.42.0.8":10351,"10.42.0.9":10352},"port":{"10351":true,"10352":true}}`)
		}, ""},
		"nor without any pod": {func(w *world) { tunnels(w, `{"ipTunnelPort":{"10.42.0.8":10351},"port":{"10351":true}}`) }, ""},
		"a record that is right is left": {func(w *world) {
			pod(w, "a", "10.42.0.9", time.Hour)
			tunnels(w, `{"ipTunnelPort":{"10.42.0.9":10352},"port":{"10352":true}}`)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := whole(t)
			row.change(w)
			if got := told(decide(w.facts)); got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
		})
	}
}

// The tie-breaker is cordoned for good, so that a cloudcore for it would wait for ever. Edge nodes may dial it all the same. A server that is
// cordoned for a while goes on to count.
func TestTheTieBreakerTakesNoCloudcore(t *testing.T) {
	for name, row := range map[string]struct {
		label string
		ha    bool
		want  int
	}{
		"three servers": {"", true, 3}, "two and a tie-breaker": {"true", true, 2}, "a label that says it is none": {"false", true, 3}, "without ha": {"true", false, 1},
	} {
		w := whole(t)
		w.server("node-3", "10.0.0.3")
		node := w.seen[object.Ref{Kind: object.Node, Name: "node-3"}]
		node["spec"] = m{"unschedulable": true}
		if row.label != "" {
			node["metadata"].(m)["labels"].(m)[tieBreaker] = row.label
		}
		w.set(func(s *settings.Settings) { s.HA = row.ha })
		if r := Judge(w.seen, now); r.Wanted != row.want || !slices.Equal(r.Addresses, []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}) {
			t.Errorf("%s: %d cloudcores are wanted, not %d; edge nodes dial %q", name, r.Wanted, row.want, r.Addresses)
		}
	}
}

// KubeEdge writes its own file at each start unless these numbers are as it wants them.
func TestCloudcoreFindsNothingToChangeInItsFile(t *testing.T) {
	for _, limit := range []int{1, 100, settings.MaxNodes} {
		s := settings.Default()
		s.NodeLimit = limit
		text, err := config(s, []string{"10.0.0.1"})
		var c struct {
			KubeAPIConfig struct{ QPS, Burst int }
			Modules       struct{ CloudHub struct{ NodeLimit int } }
		}
		if err != nil || json.Unmarshal([]byte(text), &c) != nil || c.Modules.CloudHub.NodeLimit != limit || c.KubeAPIConfig.QPS != 5*limit || c.KubeAPIConfig.Burst != 10*limit {
			t.Errorf("for %d edge nodes it is %+v, %v", limit, c, err)
		}
	}
}

func TestAPodOfCloudcoreIsReadyOnceEdgeNodesCanJoin(t *testing.T) {
	for _, https := range []bool{true, false} {
		s := settings.Default()
		s.HTTPS = https
		probes := map[string]any{}
		for _, c := range deployment(s, 1, "", "", "").List("spec", "template", "spec", "containers") {
			probes[c.Text("name")] = c.At("readinessProbe", "httpGet")
		}
		probe, there := probes["certificates"]
		if there != https || https && !reflect.DeepEqual(probe, m{"scheme": "HTTPS", "port": settings.CertificatesPort, "path": "/readyz"}) {
			t.Errorf("https %v: it is ready by %v", https, probes)
		}
		if !reflect.DeepEqual(probes["tunnel"], m{"scheme": "HTTPS", "port": settings.TunnelPort, "path": "/readyz"}) {
			t.Errorf("https %v: tunnels are ready by %v", https, probes["tunnel"])
		}
	}
}

// A controller that ends may still act by what it saw before, and nobody removes what it makes then.
func TestDisableTakesTheRightsOfTheControllerFirst(t *testing.T) {
	list := Dropped(false, nil)
	last := slices.IndexFunc(list, func(r object.Ref) bool { return r == refDeployment })
	if first := list[0]; first != refController || last < 0 {
		t.Errorf("they are removed in this order: %v", list)
	}
	refs, _ := Made(settings.Default(), nil)
	for _, r := range refs {
		binding := r.Kind == object.RoleBinding || r.Kind == object.ClusterRoleBinding
		if binding && r.Name == Controller && !slices.Contains(list[:last], r) {
			t.Errorf("%s is there until cloudcore is removed", r)
		}
		if r != refNamespace && !slices.Contains(list, r) {
			t.Errorf("%s stays", r)
		}
	}
}

func TestTheElevenDefinitionsOfKubeEdge(t *testing.T) {
	crds, err := Definitions()
	var names []string
	for _, o := range crds {
		names = append(names, o.Name())
	}
	slices.Sort(names)
	want := []string{
		"clusterobjectsyncs.reliablesyncs.kubeedge.io", "devicemodels.devices.kubeedge.io", "devices.devices.kubeedge.io", "edgeapplications.apps.kubeedge.io",
		"imageprepulljobs.operations.kubeedge.io", "nodegroups.apps.kubeedge.io", "nodeupgradejobs.operations.kubeedge.io", "objectsyncs.reliablesyncs.kubeedge.io",
		"ruleendpoints.rules.kubeedge.io", "rules.rules.kubeedge.io", "serviceaccountaccesses.policy.kubeedge.io",
	}
	if err != nil || !slices.Equal(names, want) {
		t.Errorf("they are %q, %v", names, err)
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	waits := func(image, reason string) m {
		return m{"name": "c", "image": image, "state": m{"waiting": m{"reason": reason}}}
	}
	pod := func(w *world, name string, labels, status m) {
		o := w.put(object.Ref{Kind: object.Pod, Namespace: Where, Name: name}, m{"spec": m{"nodeName": "node-2"}, "status": status})
		o["metadata"].(m)["labels"] = labels
	}
	own := m{"app.kubernetes.io/name": Controller}
	for name, row := range map[string]struct {
		change func(w *world)
		want   string
	}{
		"nothing":                  {func(*world) {}, ""},
		"nothing while it is off":  {func(w *world) { w.set(func(s *settings.Settings) { s.Enabled = false }); delete(w.seen, RefCA) }, ""},
		"the authority is gone":    {func(w *world) { delete(w.seen, RefCA) }, "Secret kubeedge/casecret is gone: no edge node trusts cloudcore any more"},
		"the authority is another": {func(w *world) { w.seen[RefCA]["metadata"].(m)["uid"] = "x" }, "casecret is another one than before"},
		"too few cloudcores":       {func(w *world) { delete(w.seen[refDeployment], "status") }, "0 of 1 cloudcores are available"},
		"a server without a path":  {func(w *world) { w.seen[refPath]["status"].(m)["numberReady"] = 1 }, "logs and metrics of edge nodes can be read on 1 of 2 servers"},
		"an image is missing": {func(w *world) {
			pod(w, "a", podLabels(), m{"containerStatuses": l{waits("docker.io/kubeedge/cloudcore:v1.20.0", "ImagePullBackOff")}})
		}, "image docker.io/kubeedge/cloudcore:v1.20.0 is missing on node node-2"},
		"no controller": {func(w *world) { delete(w.seen[refController], "status") }, "the controller has no available pod, without which nothing is made or kept as the settings say"},
		"its image is missing, which is said once": {func(w *world) {
			pod(w, "a", own, m{"containerStatuses": l{waits("edge:1", "ErrImagePull")}})
			pod(w, "b", m{"app.kubernetes.io/name": Path}, m{"containerStatuses": l{waits("edge:1", "ErrImagePull")}})
		}, "image edge:1 is missing on node node-2"},
		"it ends again and again": {func(w *world) {
			pod(w, "a", own, m{"containerStatuses": l{waits("edge:1", "CrashLoopBackOff")}})
		}, "Pod kubeedge/a does not run on node node-2: container c is in CrashLoopBackOff"},
		"no node takes it": {func(w *world) {
			pod(w, "a", own, m{"conditions": l{m{"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}}})
		}, "no node takes Pod kubeedge/a: 0/3 nodes are available"},
		"no certificate":          {func(w *world) { delete(w.seen, refStreamKey) }, "the stream has no certificate that serves"},
		"one that is not renewed": {func(w *world) { w.stream(now.Add(-time.Hour), now.Add(29*24*time.Hour)) }, "the stream has no certificate that serves"},
		"cloudcoresecret is gone": {func(w *world) {
			delete(w.seen, RefServing)
			pod(w, "a", podLabels(), m{"containerStatuses": l{m{"name": Name, "state": m{"running": m{"startedAt": "2026-11-27T09:00:00Z"}}}}})
		}, "Secret kubeedge/cloudcoresecret is gone"},
		"no address": {func(w *world) {
			w.set(func(s *settings.Settings) { s.ServiceType = settings.LoadBalancer })
		}, "waits for an address of a load balancer"},
	} {
		t.Run(name, func(t *testing.T) {
			w := whole(t)
			w.seen[refDeployment]["status"] = m{"availableReplicas": 1}
			w.put(refController, m{"status": m{"availableReplicas": 1}})
			w.seen[refPath]["status"] = m{"desiredNumberScheduled": 2, "numberReady": 2}
			row.change(w)
			got := strings.Join(Judge(w.seen, now).Problems, "; ")
			if (got == "") != (row.want == "") || strings.Count(got, row.want) != 1 && row.want != "" {
				t.Errorf("the problems are %q, not %q", got, row.want)
			}
		})
	}
}

func TestAnEdgeNodeIsFoundByItsNameAndItsAddress(t *testing.T) {
	w := whole(t)
	node := func(name, ip string, status m) {
		status["addresses"] = l{m{"type": "Hostname", "address": name}, m{"type": "InternalIP", "address": ip}}
		w.put(object.Ref{Kind: object.Node, Name: name}, m{"status": status})["metadata"].(m)["labels"] = m{edgeRole: ""}
	}
	node("edge-1", "100.127.254.1", m{"conditions": l{m{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-01T00:00:00Z"}}})
	node("edge-2", "100.127.254.2", m{"conditions": l{m{"type": "Ready", "status": "Unknown", "lastTransitionTime": "2026-11-02T00:00:00Z"}}})
	node("edge-3", "100.127.254.3", m{"nodeInfo": m{"kubeletVersion": "v1.30.7-kubeedge-v1.20.0"}})
	w.seen[object.Ref{Kind: object.Node, Name: "edge-3"}]["metadata"].(m)["labels"] = m{}
	for address, want := range map[string]string{
		"100.127.254.1": "edge-1 100.127.254.1 0001-01-01 true", "100.127.254.2": "edge-2 100.127.254.2 2026-11-02 true",
		"100.127.254.3": "edge-3 100.127.254.3 0001-01-01 true", "edge-2": "edge-2 100.127.254.2 2026-11-02 true",
		"100.127.254.4": "  0001-01-01 false", "10.0.0.1": "  0001-01-01 false", "node-1": "  0001-01-01 false", "": "  0001-01-01 false",
	} {
		name, address, since, known := Edge(w.seen, address)
		if got := fmt.Sprintln(name, address, since.Format(time.DateOnly), known); strings.TrimSuffix(got, "\n") != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}

func TestNoTunnelIsServedWhileThereShallBeNone(t *testing.T) {
	w := whole(t)
	record := func(text string) { w.put(refTunnels, m{})["metadata"].(m)["annotations"] = m{tunnelRecord: text} }
	record(`{"ipTunnelPort":{"10.42.0.8":10351},"port":{"10351":true}}`)
	if _, ports, err := Tunnels(w.seen); err != nil || ports["10.42.0.8"] != 10351 {
		t.Errorf("it is on: %v, %v", ports, err)
	}
	w.set(func(s *settings.Settings) { s.CloudStream = false })
	if _, ports, err := Tunnels(w.seen); err != nil || ports != nil {
		t.Errorf("without a stream: %v, %v", ports, err)
	}
	w.set(func(s *settings.Settings) { s.Enabled = false })
	if _, ports, err := Tunnels(w.seen); err != nil || ports != nil {
		t.Errorf("it is off: %v, %v", ports, err)
	}
	w.set(func(*settings.Settings) {})
	record("{")
	if _, _, err := Tunnels(w.seen); err == nil {
		t.Error("a record that cannot be read is no error")
	}
}
