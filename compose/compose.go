// Package compose holds the brokers of the lab: their settings, one file for
// each, which the native brokers and the containers read alike, the compose
// files, and the script that installs the brokers on a machine without Docker.
package compose

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Files are the settings and compose files, by the names they have in this
// folder.
//
//go:embed redis rabbitmq kafka postgres nats *.yml setup.sh
var Files embed.FS

// SettingsFile returns the name in Files of a broker's settings file, such as
// redis/aof-always.conf, and its content. The error names the settings that
// there are.
func SettingsFile(broker, setting string) (name string, content []byte, err error) {
	entries, err := fs.ReadDir(Files, broker)
	if err != nil {
		return "", nil, fmt.Errorf("no settings for a broker called %q", broker)
	}
	var known []string
	for _, e := range entries {
		base := strings.TrimSuffix(e.Name(), path.Ext(e.Name()))
		if base == setting {
			name = path.Join(broker, e.Name())
			content, err = Files.ReadFile(name)
			return name, content, err
		}
		known = append(known, base)
	}
	return "", nil, fmt.Errorf("%s has no setting %q: there are %s", broker, setting, strings.Join(known, ", "))
}
