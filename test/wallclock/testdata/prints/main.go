// Prints says what time it is, and how much has passed, at each line it reads.
package main

import (
	"bufio"
	"fmt"
	"os"
	"time"
)

func main() {
	began := time.Now()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(time.Now().UTC().Format(time.RFC3339Nano), time.Since(began))
	}
}
