package main

import "context"

func (b *bench) logs(context.Context, string) error { return nil }
