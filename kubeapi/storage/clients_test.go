package storage

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	longhornv1 "github.com/longhorn/longhorn-manager/k8s/pkg/apis/longhorn/v1beta2"
)

// A field that Longhorn has renamed would be read as if it were never set: a replica
// would never have been healthy, and drains and failovers would wait for it.
func TestEveryFieldThatIsReadExistsInLonghornsTypes(t *testing.T) {
	for _, pair := range []struct{ ours, theirs any }{
		{VolumePart{}, longhornv1.Volume{}},
		{EnginePart{}, longhornv1.Engine{}},
		{ReplicaPart{}, longhornv1.Replica{}},
		{SnapshotPart{}, longhornv1.Snapshot{}},
		{NodePart{}, longhornv1.Node{}},
	} {
		ours, theirs := reflect.TypeOf(pair.ours), reflect.TypeOf(pair.theirs)
		for _, part := range []string{"Spec", "Status"} {
			o, _ := ours.FieldByName(part)
			th, _ := theirs.FieldByName(part)
			sameJSON(t, theirs.Name()+"."+strings.ToLower(part), o.Type, th.Type)
		}
	}
}

// sameJSON fails the test where ours reads of a value at path what theirs does not write.
func sameJSON(t *testing.T, path string, ours, theirs reflect.Type) {
	t.Helper()
	for ours.Kind() == reflect.Pointer {
		ours = ours.Elem()
	}
	for theirs.Kind() == reflect.Pointer {
		theirs = theirs.Elem()
	}
	if kindOf(ours) != kindOf(theirs) {
		t.Errorf("%s is a %s in Longhorn, and read as a %s", path, theirs, ours)
		return
	}
	switch ours.Kind() {
	case reflect.Slice, reflect.Map:
		sameJSON(t, path+"[]", ours.Elem(), theirs.Elem())
	case reflect.Struct:
		written := jsonFields(theirs)
		for tag, field := range jsonFields(ours) {
			name, _, _ := strings.Cut(tag, ",")
			if strings.HasSuffix(tag, ",string") != strings.HasSuffix(find(written, name), ",string") {
				t.Errorf("%s.%s: %q is read as %q", path, name, find(written, name), tag)
				continue
			}
			other, ok := written[find(written, name)]
			if !ok {
				t.Errorf("%s.%s does not exist in Longhorn", path, name)
				continue
			}
			sameJSON(t, path+"."+name, field, other)
		}
	}
}

// kindOf is what a type is in JSON.
func kindOf(t reflect.Type) string {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return t.String()
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "number"
	}
	return t.Kind().String()
}

// jsonFields are the types of a struct's fields by their JSON tags, without omitempty.
func jsonFields(t reflect.Type) map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for field := range t.Fields() {
		tag := strings.ReplaceAll(field.Tag.Get("json"), ",omitempty", "")
		if field.Anonymous {
			for name, of := range jsonFields(field.Type) {
				all[name] = of
			}
			continue
		}
		all[tag] = field.Type
	}
	return all
}

// find returns the tag of the field called so.
func find(fields map[string]reflect.Type, name string) string {
	if _, ok := fields[name+",string"]; ok {
		return name + ",string"
	}
	return name
}
