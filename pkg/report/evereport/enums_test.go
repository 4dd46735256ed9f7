package evereport

import (
	"strings"
	"testing"

	"github.com/lf-edge/eve-api/go/info"

	"github.com/zedkube/zedkube/types"
)

type ours interface {
	~int8 | ~uint8 | ~int32
	String() string
}

// all are the values that eve-api names, as the compiled message knows them.
func all[M eveEnum]() []M {
	var list []M
	var zero M
	values := zero.Descriptor().Values()
	for i := range values.Len() {
		list = append(list, M(values.Get(i).Number()))
	}
	return list
}

// name is a value's name in eve-api without the enum's own name, its beginning.
func name[M eveEnum](m M) string {
	values := m.Descriptor().Values()
	first := string(values.ByNumber(0).Name())
	return strings.TrimPrefix(string(values.ByNumber(m.Number()).Name()), strings.TrimSuffix(first, "UNSPECIFIED"))
}

// covers fails where a value of either side has none on the other of the same
// number and name. other are names that differ, by eve-api's.
func covers[M eveEnum, T ours](t *testing.T, other map[string]string) {
	t.Helper()
	for _, m := range all[M]() {
		v := T(m)
		if got := enum[M](v); got != m {
			t.Errorf("%v becomes %v and then %v", m, v, got)
		}
		want, differs := other[name(m)]
		if !differs {
			want = strings.ReplaceAll(name(m), "_", "")
		}
		if got := strings.ReplaceAll(v.String(), "_", ""); m != 0 && !strings.EqualFold(got, want) {
			t.Errorf("%v is %v", m, v)
		}
	}
	for n := range 128 {
		v, got := T(n), enum[M](T(n))
		switch known := !strings.Contains(v.String(), "("); {
		case known && T(got) != v:
			t.Errorf("%v becomes %v", v, got)
		case !known && got != 0:
			t.Errorf("the unknown %v becomes %v", v, got)
		}
	}
}

func TestEveryValueOfEveAPIHasOneOfOursAndBack(t *testing.T) {
	covers[info.NodeAdmission, types.KubeNodeAdmission](t, nil)
	covers[info.KubeNodeConditionType, types.KubeNodeConditionType](t, map[string]string{"NETWORK_UNAVAIL": "NetworkUnavailable"})
	covers[info.KubeVMIStatus, types.KubeVMIStatus](t, nil)
	covers[info.KubeComp, types.KubeComp](t, nil)
	covers[info.KubeCompUpdateStatus, types.KubeCompUpdateStatus](t, nil)
	covers[info.Severity, types.ErrorSeverity](t, nil)
	covers[info.ServiceStatus, types.ServiceStatus](t, nil)
	covers[info.StorageVolumeState, types.StorageVolumeState](t, nil)
	covers[info.StorageVolumeRobustness, types.StorageVolumeRobustness](t, nil)
	covers[info.StorageVolumePVCStatus, types.StorageVolumePvcStatus](t, map[string]string{"FAILED": "Faulted"})
	covers[info.StorageVolumeReplicaStatus, types.StorageVolumeReplicaStatus](t, nil)
	covers[info.StorageHealthStatus, types.StorageHealthStatus](t, nil)
	if got := enum[info.Entity](int32(1 << 20)); got != 0 {
		t.Errorf("a value that eve-api lacks becomes %v", got)
	}
}

func TestEveryStateOfAPodIsReachedAndReadBack(t *testing.T) {
	for _, m := range all[info.KubePodStatus]() {
		p := podBack(&info.KubeEVEAppPodInfo{Status: m})
		if got := podState(p.Status, p.Reason); got != m {
			t.Errorf("%v becomes %v %q and then %v", m, p.Status, p.Reason, got)
		}
		if m != 0 && p.Status == 0 {
			t.Errorf("%v is read back without a phase", m)
		}
	}
}
