//go:build !failpoints

package main

func main() { run() }
