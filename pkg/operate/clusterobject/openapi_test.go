package clusterobject

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zedkube/zedkube/pkg/operate/kubeconfigs"
	"github.com/zedkube/zedkube/pkg/operate/page"
	"github.com/zedkube/zedkube/test/cmdtest"
	"github.com/zedkube/zedkube/types"
)

type object = map[string]any

// document makes the OpenAPI document from the types, with their comments as descriptions.
func document(t *testing.T) object {
	t.Helper()
	g := generator{schemas: object{}, comments: comments(t, "../../../types", ".", "../page", "../kubeconfigs")}
	asked := g.of(reflect.TypeFor[kubeconfigs.Request]())
	cluster, failed, audit := g.of(reflect.TypeFor[types.ClusterObject]()), g.of(reflect.TypeFor[Failure]()), g.of(reflect.TypeFor[page.Trail]())
	content := func(schema object) object { return object{"application/json": object{"schema": schema}} }
	answers := func(schema object, about map[string]string) object {
		all := object{}
		for code, text := range about {
			s := failed
			if code < "300" {
				s = schema
			}
			all[code] = object{"description": text, "content": content(s)}
		}
		return all
	}
	const soon = "The agent has just started: try again."
	text := object{"type": "string"}
	query := func(name, about string) object {
		return object{"name": name, "in": "query", "required": false, "description": about, "schema": text}
	}
	trail := object{"description": "The newest operations that pass the filters, the newest first.", "content": content(audit)}
	plain := func(about string) object {
		return object{"description": about, "content": object{"text/plain": object{"schema": text}}}
	}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "zedkube: the cluster as one object", "version": "v1alpha1", "license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"description": "Answered on the unix socket /run/zedkube/zedkube.sock, to root alone by the kernel's word. Over TCP, at 127.0.0.1:12347, only /metrics is answered, and with --page=on and its token the audit.",
		},
		"servers":  []any{object{"url": "http://zedkube", "description": "curl --unix-socket /run/zedkube/zedkube.sock"}},
		"security": []any{object{}}, // the socket's peer credentials, which OpenAPI has no word for
		"paths": object{
			Path: object{
				"get": object{"operationId": "getCluster", "summary": "The cluster of this node.", "responses": answers(cluster, map[string]string{
					"200": "The object.", "503": soon,
				})},
				"patch": object{
					"operationId": "patchCluster", "summary": "Set what is the operator's, by a JSON merge patch: spec.leave and spec.disableWorkloads.",
					"requestBody": object{"required": true, "content": object{"application/merge-patch+json": object{"schema": object{"type": "object"}}}},
					"responses": answers(cluster, map[string]string{
						"200": "The object as it is now.", "400": "The body is not such a patch.", "409": "Somebody else owns the field; the message says who, and where it is set.",
						"413": "The patch is too long.", "415": "It is not a JSON merge patch.", "500": "The request could not be made.", "503": soon,
					}),
				},
				"delete": object{
					"operationId": "leaveCluster", "summary": "Ask that this node leave its cluster, as zedkube leave does.",
					"parameters": []any{query("reason", "Why, for the audit.")},
					"responses": answers(cluster, map[string]string{
						"202": "The request has been made, or the node is leaving already.", "409": "There is nothing to leave, the controller still makes this device a member, or a request with a consent is there.",
						"500": "The request could not be made.", "503": soon,
					}),
				},
			},
			AuditPath: object{"get": object{
				"operationId": "getClusterAudit", "summary": "The audit trail of this node.",
				"parameters": []any{
					query("since", "A time, or a duration before now."), query("until", "A time, or a duration before now."), query("op", "Operations, separated by commas."),
					query("component", "Components, separated by commas."), query("by", "Requesters, separated by commas."), query("target", "A part of the target."), query("failed", "1: only what failed."),
				},
				"responses": object{"200": trail, "400": plain("A filter is not valid."), "500": plain("The audit trail cannot be read.")},
			}},
			CertsPath: object{"delete": object{
				"operationId": "resetCertificates", "summary": "Renew the certificates of k3s on this node that expire soon, as zedkube k3s certs reset does.",
				"parameters": []any{query("force", "true: also those that do not expire soon; their files are moved aside.")},
				"responses": answers(g.of(reflect.TypeFor[types.CertsResetRequest]()), map[string]string{
					"202": "The request has been made: k3s restarts under the drain lock.", "400": "The query is not valid.",
					"409": "No certificate expires soon, the clock is not believed, or k3s is being restarted.", "500": "The request could not be made.",
				}),
			}},
			kubeconfigs.Path: object{"post": object{
				"operationId": "issueKubeconfig", "summary": "Issue a kubeconfig that expires and can be revoked, as zedkube kubeconfig does.",
				"requestBody": object{"required": true, "content": object{"application/json": object{"schema": asked}}},
				"responses": object{
					"201": object{"description": "The kubeconfig.", "content": object{"application/yaml": object{"schema": text}}},
					"400": plain("The body is not such a request."), "409": plain("There are too many that have not expired."),
					"500": plain("It could not be issued."), "503": plain("The API server does not answer, or another one is being issued."),
				},
			}},
			"/metrics": object{"get": object{"operationId": "getMetrics", "summary": "The metrics of this node, in the text format of Prometheus.", "responses": object{
				"200": plain("The metrics."),
			}}},
			OpenAPIPath: object{"get": object{"operationId": "getOpenAPI", "summary": "This document.", "responses": object{
				"200": object{"description": "The document.", "content": content(object{"type": "object"})},
			}}},
		},
		"components": object{"schemas": g.schemas},
	}
}

// comments are those of struct fields and types in directories, by "Type.Field" and "Type".
func comments(t *testing.T, dirs ...string) map[string]string {
	t.Helper()
	all := map[string]string{}
	note := func(name string, groups ...*ast.CommentGroup) {
		for _, g := range groups {
			if text := strings.Join(strings.Fields(g.Text()), " "); text != "" {
				all[name] = text
			}
		}
	}
	for _, dir := range dirs {
		files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
		for _, file := range files {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				g, ok := d.(*ast.GenDecl)
				if !ok || g.Tok != token.TYPE {
					continue
				}
				for _, s := range g.Specs {
					spec := s.(*ast.TypeSpec)
					note(spec.Name.Name, g.Doc)
					if st, ok := spec.Type.(*ast.StructType); ok {
						for _, field := range st.Fields.List {
							for _, name := range field.Names {
								note(spec.Name.Name+"."+name.Name, field.Doc, field.Comment)
							}
						}
					}
				}
			}
		}
	}
	return all
}

// generator makes schemas of types.
type generator struct {
	schemas  object
	comments map[string]string
}

func enum[T ~string](values ...T) object {
	list := []any{}
	for _, v := range values {
		list = append(list, string(v))
	}
	return object{"type": "string", "enum": list}
}

func (g generator) of(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[types.ClusterPhase]():
		return enum(types.ClusterNotInitialized, types.ClusterProvisioning, types.ClusterProvisioned, types.ClusterUpgrading, types.ClusterDisabled, types.ClusterDegraded, types.ClusterFailed, types.ClusterLeaving)
	case reflect.TypeFor[types.ConditionStatus]():
		return enum(types.ConditionTrue, types.ConditionFalse, types.ConditionUnknown)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.of(t.Elem())
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Slice:
		return object{"type": "array", "items": g.of(t.Elem())}
	case reflect.Struct:
		if _, known := g.schemas[t.Name()]; !known {
			g.schemas[t.Name()] = object{} // a type within itself ends here
			g.schemas[t.Name()] = g.structure(t)
		}
		return object{"$ref": "#/components/schemas/" + t.Name()}
	}
	panic("no schema for " + t.String())
}

func (g generator) structure(t reflect.Type) object {
	fields, required := object{}, []any{}
	for _, f := range reflect.VisibleFields(t) {
		name, more, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		s := g.of(f.Type)
		if text := g.comments[t.Name()+"."+f.Name]; text != "" {
			s["description"] = text
		}
		fields[name] = s
		if more == "" {
			required = append(required, name)
		}
	}
	s := object{"type": "object", "properties": fields, "additionalProperties": false, "description": g.comments[t.Name()]}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

func TestTheDocumentIsMadeOfTheTypes(t *testing.T) {
	var made bytes.Buffer
	e := json.NewEncoder(&made)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(document(t)); err != nil {
		t.Fatal(err)
	}
	if *cmdtest.Update {
		if err := os.WriteFile("openapi.json", made.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	w := httptest.NewRecorder()
	ServeOpenAPI(w, httptest.NewRequest(http.MethodGet, OpenAPIPath, nil))
	if d := cmp.Diff(made.String(), w.Body.String()); d != "" || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("openapi.json is not what -update makes:\n%s", d)
	}
}

// schemaOf is what the document says of an answer.
func schemaOf(doc object, path, method string, code int) (schema object, found bool) {
	var at any = doc
	for _, name := range []string{"paths", path, strings.ToLower(method), "responses", fmt.Sprint(code), "content", "application/json", "schema"} {
		next, _ := at.(object)
		at = next[name]
	}
	schema, found = at.(object)
	return schema, found
}

// invalid says where a value is not as a schema says, "" for nowhere.
func invalid(doc, schema object, at string, v any) string {
	if ref, ok := schema["$ref"].(string); ok {
		name := strings.TrimPrefix(ref, "#/components/schemas/")
		target, ok := doc["components"].(object)["schemas"].(object)[name].(object)
		if !ok {
			return at + ": no schema " + name
		}
		return invalid(doc, target, at, v)
	}
	is := "null"
	switch v := v.(type) {
	case string:
		is = "string"
		if _, err := time.Parse(time.RFC3339Nano, v); schema["format"] == "date-time" && err != nil {
			return at + ": " + err.Error()
		}
		if list, ok := schema["enum"].([]any); ok && !slices.Contains(list, any(v)) {
			return at + ": not one of the values: " + v
		}
	case bool:
		is = "boolean"
	case float64:
		is = "number"
		if v == float64(int64(v)) {
			is = "integer"
		}
	case []any:
		is = "array"
		items, _ := schema["items"].(object)
		for i, x := range v {
			if why := invalid(doc, items, fmt.Sprintf("%s[%d]", at, i), x); why != "" {
				return why
			}
		}
	case object:
		is = "object"
		properties, _ := schema["properties"].(object)
		for name, x := range v {
			if p, ok := properties[name].(object); ok {
				if why := invalid(doc, p, at+"."+name, x); why != "" {
					return why
				}
			} else if schema["additionalProperties"] == false {
				return at + ": no property " + name
			}
		}
		required, _ := schema["required"].([]any)
		for _, name := range required {
			if _, there := v[name.(string)]; !there {
				return at + ": no " + name.(string)
			}
		}
	}
	if schema["type"] != is {
		return fmt.Sprintf("%s: %s, want %v", at, is, schema["type"])
	}
	return ""
}

func served(t *testing.T) (doc object) {
	t.Helper()
	w := httptest.NewRecorder()
	ServeOpenAPI(w, httptest.NewRequest(http.MethodGet, OpenAPIPath, nil))
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestEveryAnswerIsAsTheDocumentSays(t *testing.T) {
	doc := served(t)
	codes := map[string]bool{}
	check := func(name, path, method string, w *httptest.ResponseRecorder) {
		t.Helper()
		var v any
		schema, found := schemaOf(doc, path, method, w.Code)
		if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil || !found {
			t.Errorf("%s: %d is not in the document, or %v: %s", name, w.Code, err, w.Body)
			return
		}
		codes[fmt.Sprint(path, " ", method, " ", w.Code)] = true
		if why := invalid(doc, schema, "$", v); why != "" {
			t.Errorf("%s: %s in %s", name, why, w.Body)
		}
	}
	sample, err := os.ReadFile("../../../types/testdata/ClusterObject.json")
	if err != nil {
		t.Fatal(err)
	}
	all := httptest.NewRecorder()
	_, _ = all.Write(sample)
	check("every field", Path, "get", all)
	for name, f := range map[string]facts{
		"single": single(), "silent": single(silent), "joined": joinedServer(), "before": joinedServer(before), "leaving": joinedServer(leaving), "nothing": {},
		"no kubeconfig": single(notYet), "update": single(update(types.KubeCompCdi, types.KubeCompUpdateFailed), kubeInit(types.KubeInitStatus{})),
	} {
		check(name, Path, "get", asked(f, nil, http.MethodGet, Path, ""))
	}
	for name, body := range map[string]string{
		"done": `{"spec":{"leave":true}}`, "refused": `{"spec":{"version":"v1"}}`, "bad": `[]`, "long": `"` + strings.Repeat("x", maxPatch) + `"`,
	} {
		check(name, Path, "patch", asked(joinedServer(doubtful), &requests{}, http.MethodPatch, Path, body))
	}
	for name, f := range map[string]facts{"done": joinedServer(doubtful), "refused": joinedServer(), "unknown": single(func(f *facts) { f.known = false })} {
		check(name, Path, "delete", asked(f, &requests{}, http.MethodDelete, Path, ""))
	}
	trail := httptest.NewRecorder()
	_ = json.NewEncoder(trail).Encode(page.Trail{Operations: []types.Operation{{ID: "1", At: noon, Op: "cordon"}}, Remarks: []string{}})
	check("audit", AuditPath, "get", trail)
	if len(codes) < 9 {
		t.Errorf("only %v were compared", codes)
	}
}

func TestAnAnswerThatIsNotAsTheDocumentSaysIsFound(t *testing.T) {
	doc := served(t)
	schema, _ := schemaOf(doc, Path, "get", 200)
	for name, spoil := range map[string]func(o object){
		"a phase that is none":      func(o object) { o["status"].(object)["phase"] = "Fine" },
		"no kind":                   func(o object) { delete(o, "kind") },
		"a field that is none":      func(o object) { o["spec"].(object)["replicas"] = 3.0 },
		"a number for a text":       func(o object) { o["metadata"].(object)["name"] = 1.0 },
		"a time that is none":       func(o object) { o["status"].(object)["phaseTransitionTime"] = "noon" },
		"null for a list":           func(o object) { o["status"].(object)["conditions"] = nil },
		"a condition that is maybe": func(o object) { o["status"].(object)["conditions"].([]any)[0].(object)["status"] = "Maybe" },
	} {
		var o object
		if err := json.Unmarshal(asked(joinedServer(), nil, http.MethodGet, Path, "").Body.Bytes(), &o); err != nil {
			t.Fatal(err)
		}
		if why := invalid(doc, schema, "$", o); why != "" {
			t.Fatal(why)
		}
		if spoil(o); invalid(doc, schema, "$", o) == "" {
			t.Errorf("%s is valid", name)
		}
	}
}
