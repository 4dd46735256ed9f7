package join

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"time"
)

// Token is one that cloudcore accepts until then: the hash of its authority, by which the device knows cloudcore, and
// a JSON Web Token that is signed with the key of that authority. KubeEdge has no place in it for a name.
func Token(ca, key []byte, until time.Time) string {
	sum := sha256.Sum256(ca)
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode(fmt.Appendf(nil, `{"exp":%d}`, until.Unix()))
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(signed))
	return hex.EncodeToString(sum[:]) + "." + signed + "." + encode(mac.Sum(nil))
}
