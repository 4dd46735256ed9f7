// Command etcd35 is the last etcd of 3.5 that can be built here, for tests of the step to
// 3.6. Its first argument is the name under which devkube has an etcd, too.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	if len(os.Args) > 1 {
		etcdmain.Main(os.Args[1:])
	}
}
