package access

import (
	"fmt"
	"net/http/httptest"
	"testing"
)

func TestVerbsAreToldFromMethodsAndPaths(t *testing.T) {
	for request, want := range map[string]string{
		"GET /api/v1/nodes":                                               "list",
		"GET /api/v1/nodes?watch=true":                                    "watch",
		"GET /api/v1/nodes/n1":                                            "get",
		"GET /api/v1/nodes/n1/status":                                     "get",
		"GET /api/v1/namespaces/ns/pods":                                  "list",
		"GET /api/v1/namespaces/ns/pods/p":                                "get",
		"GET /api/v1/namespaces/ns/pods/p/log?follow=true":                "get",
		"GET /api/v1/namespaces/ns":                                       "get",
		"GET /apis/apps/v1/replicasets":                                   "list",
		"GET /apis/kubevirt.io/v1/namespaces/ns/virtualmachineinstances/": "list",
		"GET /apis/longhorn.io/v1beta2/namespaces/ns/volumes/v":           "get",
		"GET /readyz":    "get",
		"GET /version":   "get",
		"GET /api":       "get",
		"GET /apis/apps": "get",
		"GET /":          "get",
		"POST /api/v1/namespaces/ns/pods/p/eviction": "create",
		"PUT /api/v1/nodes/n1":                       "update",
		"PATCH /api/v1/nodes/n1":                     "patch",
		"DELETE /api/v1/namespaces/ns/pods/p":        "delete",
		"OPTIONS /api/v1/nodes":                      "other",
	} {
		var method, path string
		_, _ = fmt.Sscan(request, &method, &path)
		if got := verbOf(httptest.NewRequest(method, path, nil)); got != want {
			t.Errorf("%s is %s", request, got)
		}
	}
}
