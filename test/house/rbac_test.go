package house

import (
	"bytes"
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// roles reads those of deploy/rbac.yaml, by kind, namespace and name.
func roles(t *testing.T) map[string][]rbacv1.PolicyRule {
	t.Helper()
	text, err := os.ReadFile("../../deploy/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]rbacv1.PolicyRule{}
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		var role rbacv1.ClusterRole // a Role has the same fields
		if err := decoder.Decode(&role); errors.Is(err, io.EOF) {
			return found
		} else if err != nil {
			t.Fatal(err)
		}
		if role.Kind == "ClusterRole" || role.Kind == "Role" {
			found[role.Kind+" "+strings.TrimPrefix(role.Namespace+"/", "/")+role.Name] = role.Rules
		}
	}
}

// tooMuch says what a rule must not have, or nothing.
func tooMuch(rule rbacv1.PolicyRule) (found []string) {
	has := func(resource string) bool { return slices.Contains(rule.Resources, resource) }
	may := func(verb string) bool { return slices.Contains(rule.Verbs, verb) }
	for _, words := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs, rule.ResourceNames, rule.NonResourceURLs} {
		for _, word := range words {
			if strings.Contains(word, "*") {
				found = append(found, "the wildcard "+word)
			}
		}
	}
	for _, verb := range []string{"escalate", "impersonate", "deletecollection", "approve", "sign", "attest"} {
		if may(verb) {
			found = append(found, "the verb "+verb)
		}
	}
	if may("bind") && (len(rule.ResourceNames) == 0 || len(rule.Verbs) > 1) {
		found = append(found, "bind without names")
	}
	for _, name := range rule.ResourceNames {
		if may("bind") && name != "view" && name != "edit" {
			found = append(found, "bind of "+name)
		}
	}
	if has("secrets") && (len(rule.ResourceNames) == 0 || !slices.Equal(rule.Verbs, []string{"get"})) {
		found = append(found, "secrets that are not named")
	}
	for _, resource := range []string{"nodes/proxy", "pods/exec", "pods/attach", "pods/portforward", "pods/ephemeralcontainers", "users", "groups", "certificatesigningrequests"} {
		if has(resource) {
			found = append(found, resource)
		}
	}
	for _, resource := range []string{"pods", "clusterroles", "roles", "rolebindings", "daemonsets", "statefulsets", "jobs"} {
		if has(resource) && (may("create") || may("update") || resource != "pods" && may("patch")) {
			found = append(found, "writing "+resource)
		}
	}
	return found
}

func TestZedkubesRolesHaveNothingThatLeadsToMore(t *testing.T) {
	rules := 0
	for role, of := range roles(t) {
		for _, rule := range of {
			rules++
			for _, what := range tooMuch(rule) {
				t.Errorf("deploy/rbac.yaml: %s has %s: %v", role, what, rule)
			}
		}
	}
	if rules < 20 {
		t.Errorf("only %d rules are found", rules)
	}
}

func TestWhatARoleMustNotHaveIsSeen(t *testing.T) {
	for what, rule := range map[string]rbacv1.PolicyRule{
		"any verb":              {APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"*"}},
		"any resource":          {APIGroups: []string{""}, Resources: []string{"pods/*"}, Verbs: []string{"get"}},
		"any group":             {APIGroups: []string{"*"}, Resources: []string{"pods"}, Verbs: []string{"get"}},
		"any path":              {NonResourceURLs: []string{"/debug/*"}, Verbs: []string{"get"}},
		"any secret":            {APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}},
		"lists of secrets":      {APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"a"}, Verbs: []string{"get", "list"}},
		"bind of any role":      {APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, Verbs: []string{"bind"}},
		"bind of cluster-admin": {APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, ResourceNames: []string{"cluster-admin"}, Verbs: []string{"bind"}},
		"escalate":              {APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, ResourceNames: []string{"view"}, Verbs: []string{"escalate"}},
		"roles":                 {APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, Verbs: []string{"create"}},
		"the kubelets":          {APIGroups: []string{""}, Resources: []string{"nodes/proxy"}, Verbs: []string{"get"}},
		"commands in pods":      {APIGroups: []string{""}, Resources: []string{"pods/exec"}, Verbs: []string{"create"}},
		"new pods":              {APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "create"}},
	} {
		if len(tooMuch(rule)) == 0 {
			t.Errorf("%s is not seen", what)
		}
	}
}

// table returns the rows of the table in a document that begins with that head, as cells.
func table(t *testing.T, file, head string) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n"+head+"\n")
	body, _, _ := strings.Cut(rest, "\n\n")
	if !found {
		t.Fatalf("%s has no table %s", file, head)
	}
	for line := range strings.Lines(body) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if !strings.HasPrefix(cells[0], "---") {
			rows = append(rows, cells)
		}
	}
	return rows
}

func TestWhatARefusalDoesIsDocumentedForEachComponentAndResource(t *testing.T) {
	const operations = "../../docs/operations.md"
	has := map[string]int{}
	for _, row := range table(t, operations, "| component | without a permission |") {
		for name := range strings.SplitSeq(row[0], ", ") {
			has[name]++
		}
	}
	components := table(t, "../../docs/architecture.md", "| component | in | out |")
	for _, row := range components {
		if has[row[0]] != 1 {
			t.Errorf("docs/operations.md says %d times what a refusal does to %s", has[row[0]], row[0])
		}
		delete(has, row[0])
	}
	if len(has) > 0 || len(components) < 30 {
		t.Errorf("of %d components, these are none: %v", len(components), has)
	}

	named := map[string]bool{}
	word := regexp.MustCompile("`([a-z/-]+)`")
	for _, row := range table(t, operations, "| without the permission for | what does not work | where it shows, beside the condition |") {
		for _, name := range word.FindAllStringSubmatch(row[0], -1) {
			named[name[1]] = true
		}
	}
	for role, rules := range roles(t) {
		for _, rule := range rules {
			for _, resource := range slices.Concat(rule.Resources, rule.NonResourceURLs) {
				if !named[resource] {
					t.Errorf("docs/operations.md does not say what is missing without %s of %s", resource, role)
				}
			}
		}
	}
}
