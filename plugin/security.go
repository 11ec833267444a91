package plugin

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"sync"

	"github.com/seaweedfs/seaweedfs/weed/security"
	"github.com/seaweedfs/seaweedfs/weed/util"
	"github.com/seaweedfs/seaweedfs/weed/util/fla9"
	"github.com/spf13/viper"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/seaice/seaice/fault"
)

// component is the section of security.toml for workers.
const component = "grpc.worker"

// secured is how the worker proves itself to the admin.
type secured struct {
	transport grpc.DialOption
	key       security.SigningKey
	seconds   int
}

// credentials are made anew for each stream, as they may expire. They go with
// the stream only; a job must not carry them on.
func (s secured) credentials() metadata.MD {
	return security.GrpcAdminPeerCredentials(s.key, s.seconds)
}

// loadSecurity reads [grpc.worker], grpc.ca and [jwt.filer_signing] of
// security.toml with weed's WEED_* variables over it. An empty file is searched
// for where weed does; none found is a cluster without security. Relative paths
// of certificates are resolved against the file's directory.
func loadSecurity(file string) (secured, error) {
	quiet.Do(func() { _ = fla9.Set("logtostderr", "true") })
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
	for _, key := range []string{"grpc.ca", component + ".cert", component + ".key", component + ".client_cert", component + ".client_key"} {
		if p := v.GetString(key); p != "" && !path.IsAbs(p) {
			v.Set(key, path.Join(path.Dir(file), p))
		}
	}
	s := secured{
		key:     security.SigningKey(v.GetString("jwt.filer_signing.key")),
		seconds: v.GetInt("jwt.filer_signing.expires_after_seconds"),
	}
	var err error
	if s.transport, err = transport(v); err != nil {
		return secured{}, fault.Wrap(fault.Unsupported, "load [grpc.worker] of "+file, err)
	}
	return s, nil
}

// quiet keeps SeaweedFS's logger from opening files in the temporary directory.
var quiet sync.Once

func findSecurity() string {
	dirs := []string{"."}
	if home, err := os.UserHomeDir(); err == nil {
		dirs = append(dirs, path.Join(home, ".seaweedfs"))
	}
	for _, dir := range append(dirs, "/usr/local/etc/seaweedfs", "/etc/seaweedfs") {
		p := path.Join(dir, "security.toml")
		if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() {
			return p
		}
	}
	return ""
}

// transport checks everything that would make weed's loader end the process
// before it calls it.
func transport(v *viper.Viper) (grpc.DialOption, error) {
	cert, key := v.GetString(component+".client_cert"), v.GetString(component+".client_key")
	if (cert == "") != (key == "") {
		return nil, errors.New("client_cert and client_key must both be set")
	}
	if cert == "" {
		cert, key = v.GetString(component+".cert"), v.GetString(component+".key")
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
	if ca == "" {
		return nil, errors.New("grpc.ca is not set")
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	if !x509.NewCertPool().AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("no certificate in %s", ca)
	}
	return security.LoadClientTLS(util.NewViperProxy(v), component), nil
}
