package localserver

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/zedkube/zedkube/pkg/base/keptfile"
)

const (
	// maxWrong is how many wrong tokens are told so within wrongWithin. Those
	// beyond are told that there were too many; the right one is taken all the
	// same, or any program of the device could lock its operator out. It has 128
	// bits or more, so nobody guesses it.
	maxWrong    = 10
	wrongWithin = time.Minute
)

// token is the reading token: a program that has it may read over loopback what else
// only root may read over the socket. It is made at the start of the agent and
// ends with it.
type token struct {
	mu    sync.Mutex
	text  string
	wrong []time.Time // the newest maxWrong
}

// value returns the token, a new one the first time.
func (t *token) value() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.text == "" {
		t.text = rand.Text()
	}
	return t.text
}

// check judges the Authorization header of r; nothing else may carry the token,
// since paths and queries are logged, and cookies are sent by other sites too.
func (t *token) check(r *http.Request, now time.Time) *refusal {
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || given == "" {
		return &refusal{code: http.StatusUnauthorized, why: "a reading token is required: \"zedkube page\" prints it on the device, for root"}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	is, want := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(t.text))
	if t.text != "" && subtle.ConstantTimeCompare(is[:], want[:]) == 1 {
		return nil
	}
	if len(t.wrong) == maxWrong {
		if now.Sub(t.wrong[0]) < wrongWithin {
			return &refusal{code: http.StatusTooManyRequests, why: "too many wrong tokens within a minute"}
		}
		t.wrong = t.wrong[1:]
	}
	t.wrong = append(t.wrong, now)
	return &refusal{code: http.StatusUnauthorized, why: "the reading token is not valid, it changes at each start of the agent: \"zedkube page\" prints it"}
}

// TokenFile is the content of the file with the reading token, as JSON.
type TokenFile struct {
	Address string // host:port, on loopback
	Token   string
}

// keepToken keeps the token's file, or removes it.
func (c *Component) keepToken(wanted bool) error {
	if c.TokenFile == "" {
		return nil
	}
	file := keptfile.File{Path: c.TokenFile, Name: "reading token"}
	wish := keptfile.Desired{Do: keptfile.Remove}
	if wanted {
		content, err := json.Marshal(TokenFile{Address: c.Address, Token: c.token.value()})
		if err != nil {
			return fmt.Errorf("write reading token: %w", err)
		}
		wish = keptfile.Desired{Do: keptfile.Write, Content: string(content)}
	}
	_, err := file.Keep(wish)
	return err
}
