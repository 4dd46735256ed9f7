package join

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// jwtHead says how tokens are signed. KubeEdge writes the same, to the letter.
const jwtHead = `{"alg":"HS256","typ":"JWT"}`

type claims struct {
	Until int64  `json:"exp"` // seconds since 1970
	Name  string `json:"sub"` // of the node; KubeEdge does not look at it
}

// Token is one that cloudcore accepts until then: the hash of its authority, by which the device knows cloudcore, and
// a JSON Web Token for the name of a node, that is signed with the key of that authority.
func Token(ca, key []byte, name string, until time.Time) string {
	sum := sha256.Sum256(ca)
	text, _ := json.Marshal(claims{until.Unix(), name}) // of a number and a text
	signed := encoded([]byte(jwtHead)) + "." + encoded(text)
	return hex.EncodeToString(sum[:]) + "." + signed + "." + encoded(mac(signed, key))
}

// Whose is the name that a token is for, without the hash before it. One that KubeEdge has made is for none.
func Whose(token string, key []byte, now time.Time) (name string, err error) {
	signed, signature := token, ""
	if i := strings.LastIndexByte(token, '.'); i >= 0 {
		signed, signature = token[:i], token[i+1:]
	}
	head, text, _ := strings.Cut(signed, ".")
	got, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil || head != encoded([]byte(jwtHead)) || !hmac.Equal(got, mac(signed, key)) {
		return "", errors.New("the token is not signed by this cluster's cloudcore")
	}
	var c claims
	said, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(said, &c)
	}
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	if until := time.Unix(c.Until, 0); !now.Before(until) {
		return "", fmt.Errorf("the token expired at %s", until.UTC().Format(time.RFC3339))
	}
	if c.Name == "" {
		return "", errors.New("the token is for no name: only those of zedkube-edge join are")
	}
	return c.Name, nil
}

func encoded(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func mac(signed string, key []byte) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(signed))
	return m.Sum(nil)
}
