package filer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/seaweedfs/seaweedfs/weed/security"
	"github.com/seaweedfs/seaweedfs/weed/util"
	"github.com/seaweedfs/seaweedfs/weed/util/fla9"
	httpclient "github.com/seaweedfs/seaweedfs/weed/util/http/client"
	"github.com/spf13/viper"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/seaice/seaice/fault"
)

const securityFile = "security.toml"

// jwtSeconds is how long a token that this client signs itself is valid, as
// weed has it by default. It is checked when a request begins.
const jwtSeconds = 10

// secured is what security.toml says about a client of filer and volume
// servers. The zero value is a cluster without security.
type secured struct {
	dial grpc.DialOption
	// readKey signs reads from volume servers, writeKey the release of chunks;
	// uploads carry the token that AssignVolume answers with.
	readKey, writeKey security.SigningKey
	http              doer
	scheme            string
}

// doer is an HTTP client.
type doer interface {
	Do(*http.Request) (*http.Response, error)
}

// findSecurity returns the first security.toml in the places where weed looks
// for it, or "" if there is none.
func findSecurity() string {
	dirs := []string{"."}
	if home, err := os.UserHomeDir(); err == nil {
		dirs = append(dirs, path.Join(home, ".seaweedfs"))
	}
	for _, dir := range append(dirs, "/usr/local/etc/seaweedfs", "/etc/seaweedfs") {
		p := path.Join(dir, securityFile)
		if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() {
			return p
		}
	}
	return ""
}

// loadSecurity reads the file, with weed's WEED_* variables over it. Relative
// paths of certificates are resolved against the file's directory.
func loadSecurity(file string) (secured, error) {
	quietGlog()
	if file == "" {
		file = findSecurity()
	}
	v := viper.New()
	v.SetEnvPrefix("weed")
	v.SetEnvKeyReplacer(strings.NewReplacer(".", "_"))
	v.AutomaticEnv()
	if file != "" {
		v.SetConfigFile(file)
		if err := v.ReadInConfig(); err != nil {
			return secured{}, fault.Wrap(fault.Unsupported, "read security configuration "+file, err)
		}
	}
	base := path.Dir(file)
	for _, key := range []string{"grpc.ca", "grpc.client.cert", "grpc.client.key", "grpc.client.client_cert", "grpc.client.client_key", "https.client.cert", "https.client.key", "https.client.ca"} {
		if p := v.GetString(key); p != "" && !path.IsAbs(p) {
			v.Set(key, path.Join(base, p))
		}
	}
	s := secured{
		readKey:  security.SigningKey(v.GetString("jwt.signing.read.key")),
		writeKey: security.SigningKey(v.GetString("jwt.signing.key")),
		scheme:   "http",
	}
	var err error
	if s.dial, err = dialOption(v); err != nil {
		return secured{}, fault.Wrap(fault.Unsupported, "load [grpc.client] of "+file, err)
	}
	if s.http, err = httpOf(v); err != nil {
		return secured{}, fault.Wrap(fault.Unsupported, "load [https.client] of "+file, err)
	}
	if v.GetBool("https.client.enabled") {
		s.scheme = "https"
	}
	return s, nil
}

var (
	dialMu      sync.Mutex
	dialOptions = map[string]grpc.DialOption{}
)

// dialOption is the transport security of the gRPC connections. Everything that
// makes weed's loader end the process is checked first. The option is kept per
// configuration, because its certificate watchers run for the life of the
// process.
func dialOption(v *viper.Viper) (grpc.DialOption, error) {
	cert, key := v.GetString("grpc.client.client_cert"), v.GetString("grpc.client.client_key")
	if (cert == "") != (key == "") {
		return nil, errors.New("client_cert and client_key must both be set")
	}
	if cert == "" {
		cert, key = v.GetString("grpc.client.cert"), v.GetString("grpc.client.key")
	}
	if cert == "" && key == "" {
		return grpc.WithTransportCredentials(insecure.NewCredentials()), nil
	}
	if cert == "" || key == "" {
		return nil, errors.New("cert and key must both be set")
	}
	if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
		return nil, err
	}
	ca := v.GetString("grpc.ca")
	if err := checkAuthorities(ca); err != nil {
		return nil, err
	}
	for _, name := range []string{"tls.min_version", "tls.max_version"} {
		if _, err := security.TlsVersionByName(v.GetString(name)); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if _, err := security.TlsCipherSuiteByNames(v.GetString("tls.cipher_suites")); err != nil {
		return nil, fmt.Errorf("tls.cipher_suites: %w", err)
	}
	dialMu.Lock()
	defer dialMu.Unlock()
	id := fmt.Sprint(cert, key, ca, v.GetStringMap("tls"), v.GetStringMap("grpc"))
	if o := dialOptions[id]; o != nil {
		return o, nil
	}
	o := security.LoadClientTLS(util.NewViperProxy(v), "grpc.client")
	dialOptions[id] = o
	return o, nil
}

func checkAuthorities(file string) error {
	if file == "" {
		return errors.New("grpc.ca is not set")
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if !x509.NewCertPool().AppendCertsFromPEM(pem) {
		return fmt.Errorf("no certificate in %s", file)
	}
	return nil
}

// httpOf is the HTTP client for volume servers. It never asks for compression
// by itself: chunks that are stored compressed are asked for as such.
func httpOf(v *viper.Viper) (doer, error) {
	if !v.GetBool("https.client.enabled") {
		return &http.Client{CheckRedirect: noRedirect, Transport: &http.Transport{
			DialContext:           (&net.Dialer{Timeout: dialTimeout, KeepAlive: keepaliveTime}).DialContext,
			MaxIdleConns:          256,
			MaxIdleConnsPerHost:   64,
			IdleConnTimeout:       90 * time.Second,
			ResponseHeaderTimeout: headerTimeout,
			WriteBufferSize:       64 << 10,
			ReadBufferSize:        64 << 10,
			DisableCompression:    true,
		}}, nil
	}
	c, err := httpclient.NewHttpClientWithTLS(v.GetString("https.client.cert"), v.GetString("https.client.key"),
		v.GetString("https.client.ca"), v.GetBool("https.client.insecure_skip_verify"))
	if err != nil {
		return nil, err
	}
	c.Transport.DisableCompression = true
	c.Client.CheckRedirect = noRedirect
	return c, nil
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

var quiet sync.Once

// quietGlog keeps SeaweedFS's logger, which some of its packages use, from
// opening files in the temporary directory.
func quietGlog() {
	quiet.Do(func() { _ = fla9.Set("logtostderr", "true") })
}
