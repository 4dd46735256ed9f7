package compat

import (
	"strings"
	"testing"

	"github.com/zedkube/zedkube/types"
)

func TestWhichComponentSupportsWhichKubernetes(t *testing.T) {
	for _, row := range []struct {
		component types.KubeComp
		version   string
		minor     int
		want      Verdict
		why       string
	}{
		{types.KubeCompKubevirt, "v1.6.0", 33, Supported, ""},
		{types.KubeCompKubevirt, "v1.6.0", 31, Supported, ""},
		{types.KubeCompKubevirt, "v1.6.0", 34, NotSupported, "supports Kubernetes up to 1.33"},
		{types.KubeCompKubevirt, "v1.6.0", 30, NotSupported, "needs Kubernetes 1.31 or later"},
		{types.KubeCompKubevirt, "v1.7.3", 34, Supported, ""},
		{types.KubeCompKubevirt, "v1.7.3", 35, NotSupported, "supports Kubernetes up to 1.34"},
		{types.KubeCompKubevirt, "v1.1.0-dirty", 28, Supported, ""},
		{types.KubeCompKubevirt, "v1.99.0", 35, Unknown, "which versions of Kubernetes kubevirt v1.99.0 supports is not known"},
		{types.KubeCompKubevirt, "v2.6.0", 33, Unknown, "is not known"},
		{types.KubeCompLonghorn, "v1.9.1", 34, Supported, ""},
		{types.KubeCompLonghorn, "v1.9.1", 99, Supported, ""},
		{types.KubeCompLonghorn, "v1.9.1", 24, NotSupported, "needs Kubernetes 1.25 or later"},
		{types.KubeCompLonghorn, "v1.6.3", 28, Supported, ""},
		{types.KubeCompLonghorn, "v1.11.2", 33, Supported, ""},
		{types.KubeCompLonghorn, "v1.13.0", 33, NotSupported, "needs Kubernetes 1.34 or later"},
		{types.KubeCompLonghorn, "v1.7.0", 33, Unknown, "is not known"},
		{types.KubeCompLonghorn, "v1.11.3", 33, NotSupported, "needs Kubernetes 1.34 or later"},
		{types.KubeCompLonghorn, "v1.11.3", 34, Supported, ""},
		{types.KubeCompCdi, "v1.62.0", 34, Unknown, "is not known"},
		{types.KubeCompCdi, "", 34, Unknown, "the version of cdi is not known"},
		{types.KubeCompKubevirt, "latest", 34, Unknown, "the version of kubevirt is not known"},
	} {
		got, why := Check(row.component, row.version, row.minor)
		if got != row.want || !strings.Contains(why, row.why) || (why == "") != (got == Supported) {
			t.Errorf("%s %s on 1.%d: %s, %q; want %s, %q", row.component, row.version, row.minor, got, why, row.want, row.why)
		}
	}
}
