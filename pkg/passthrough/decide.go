package passthrough

// facts is everything decide may look at.
type facts struct{}

// action is everything decide may ask for.
type action struct{}

// decide says what is to be done.
func decide(facts) action { return action{} }
