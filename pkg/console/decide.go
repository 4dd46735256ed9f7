package console

// facts is everything decide may look at.
type facts struct{}

// action is everything decide may ask for.
type action struct{}

// decide says what the console file should be, from facts alone.
func decide(facts) action { return action{} }
