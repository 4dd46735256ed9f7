package witness

// facts is everything decide may look at.
type facts struct{}

// action is everything decide may ask for.
type action struct{}

// dial is one attempt to connect.
type dial struct{}

// decide says whom to look at, and what to tell, from facts alone.
func decide(facts) action { return action{} }
