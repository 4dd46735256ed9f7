package settings

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestWhatIsNotAllowedIsNamed(t *testing.T) {
	for name, row := range map[string]struct {
		set  []string
		want string // a part of the error; "" for none
	}{
		"the defaults":                          {nil, ""},
		"the defaults with a load balancer":     {[]string{"serviceType=LoadBalancer"}, ""},
		"a type of Service that there is not":   {[]string{"serviceType=ClusterIP"}, "not NodePort or LoadBalancer"},
		"as many edge nodes as have an address": {[]string{"nodeLimit=250"}, ""},
		"more":                                  {[]string{"nodeLimit=251"}, "nodeLimit is 251, not 1 to 250"},
		"none":                                  {[]string{"nodeLimit=0"}, "nodeLimit is 0"},
		"no way to connect":                     {[]string{"websocket=false"}, "websocket and quic are both false"},
		"QUIC alone":                            {[]string{"websocket=false", "quic=true"}, ""},
		"a NodePort that Kubernetes does not give": {[]string{"websocketPort=10000"}, "websocketPort is 10000, not 30000 to 32767"},
		"the same with a load balancer":            {[]string{"serviceType=LoadBalancer", "websocketPort=9000"}, ""},
		"a port above all":                         {[]string{"serviceType=LoadBalancer", "quicPort=65536"}, "quicPort is 65536, not 1 to 65535"},
		"two ports that are the same":              {[]string{"websocketPort=31500", "cloudTunnelPort=31500"}, "websocketPort and cloudTunnelPort are both 31500"},
		"a port that is another one's default":     {[]string{"websocketPort=31002"}, "are both 31002"},
		"an address that is a name":                {[]string{"advertiseAddress=site.example"}, `"site.example", which is no IP address`},
		"an address twice":                         {[]string{"advertiseAddress=192.0.2.1,192.0.2.1"}, "192.0.2.1 twice"},
		"addresses of both families":               {[]string{"advertiseAddress=192.0.2.1,2001:db8::1"}, ""},
		"no address in particular":                 {[]string{"advertiseAddress=0.0.0.0"}, "no IP address"},
		"a block that is too small":                {[]string{"edgeBlock=100.127.254.0/25"}, "edgeBlock"},
		"a block that does not begin there":        {[]string{"edgeBlock=100.127.254.1/24"}, "edgeBlock"},
		"the stream open to all, and off":          {[]string{"cloudStream=false", "exposeCloudStream=true"}, "exposeCloudStream is true"},
		"a destination that is a name":             {[]string{"destinationAddress=x"}, "destinationAddress"},
		"no log port":                              {[]string{"logPort=0"}, "logPort is 0"},
		"no image":                                 {[]string{"image="}, "is no image"},
	} {
		t.Run(name, func(t *testing.T) {
			s := Default()
			for _, word := range row.set {
				var err error
				k, v, _ := strings.Cut(word, "=")
				if s, err = s.Set(k, v); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Validate(); (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
				t.Errorf("the error is %v, not %q", err, row.want)
			}
		})
	}
}

func TestSettingsAreReadStrictly(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                                "",
		`{"nodeLimit":7}`:                   "",
		`{"nodeLimits":7}`:                  "unknown field",
		`{"nodeLimit":"7"}`:                 "cannot unmarshal",
		`{"nodeLimit":7} {}`:                "something follows",
		`{"advertiseAddress":null}`:         "",
		`[`:                                 "read settings",
		strings.Repeat(" ", MaxText) + `{}`: "bytes",
	} {
		if _, err := Parse([]byte(text)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, not %q", text, err, want)
		}
	}
	s, err := Parse([]byte(`{"enabled":true,"nodeLimit":7}`))
	if want := Default(); err != nil || s.NodeLimit != 7 || !s.Enabled || s.Websocket != want.Websocket || s.LogPort != 10350 {
		t.Errorf("read is %+v, %v", s, err)
	}
	text, err := s.Text()
	again, errAgain := Parse([]byte(text))
	if err != nil || errAgain != nil || !reflect.DeepEqual(s, again) {
		t.Errorf("written and read again it is %+v, %v, %v", again, err, errAgain)
	}
}

func TestEveryFieldIsASettingAndEverySettingAField(t *testing.T) {
	text, _ := json.Marshal(Default())
	fields := map[string]any{}
	_ = json.Unmarshal(text, &fields)
	delete(fields, "enabled")
	for _, k := range Keys() {
		if _, is := fields[k.Name]; !is {
			t.Errorf("%s is no field", k.Name)
		}
		delete(fields, k.Name)
		if k.Means == "" {
			t.Errorf("%s says nothing", k.Name)
		}
	}
	if len(fields) > 0 {
		t.Errorf("these cannot be set: %v", fields)
	}
}

func TestWhatIsTypedIsTakenOrRefused(t *testing.T) {
	for word, want := range map[string]string{
		"ha=yes": "not true or false", "nodeLimit=ten": "not a number", "enabled=true": "no setting", "": "no setting",
	} {
		k, v, _ := strings.Cut(word, "=")
		if _, err := Default().Set(k, v); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", word, err)
		}
	}
	s, err := Default().Set("advertiseAddress", " 192.0.2.1, 192.0.2.2 ,")
	if err != nil || s.Value("advertiseAddress") != "192.0.2.1,192.0.2.2" || len(Default().AdvertiseAddress) != 0 {
		t.Errorf("two addresses are %q, %v", s.Value("advertiseAddress"), err)
	}
	if got := Changed(Default(), s); !slices.Equal(got, []string{"advertiseAddress"}) {
		t.Errorf("changed are %q", got)
	}
	if s, err = s.Set("advertiseAddress", ""); err != nil || len(Changed(Default(), s)) > 0 {
		t.Errorf("without addresses it is %+v, %v", s, err)
	}
}

func TestWhatHADoesNotCoverIsSaid(t *testing.T) {
	for set, want := range map[string]string{
		"":                                   "",
		"ha=true":                            "ha with NodePort covers a cloudcore that dies",
		"ha=true advertiseAddress=192.0.2.1": "loss of the server with the address 192.0.2.1",
		"ha=true serviceType=LoadBalancer":   "",
	} {
		s := Default()
		for word := range strings.FieldsSeq(set) {
			k, v, _ := strings.Cut(word, "=")
			s, _ = s.Set(k, v)
		}
		if got := strings.Join(s.Warnings(), "; "); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, not %q", set, got, want)
		}
	}
}

func TestImagesAreTaggedAsTheControllerAsksForThem(t *testing.T) {
	text, err := os.ReadFile("../../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if rule := strings.ReplaceAll(release.String(), "$", "$$"); !strings.Contains(string(text), rule) || !strings.Contains(string(text), controllerRepository+":$(EDGE_TAG)") {
		t.Errorf("the Makefile tags by another rule than %s, or for another repository than %s", rule, controllerRepository)
	}
}
