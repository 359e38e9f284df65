package broker

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
)

// archivePath names the class-data archive of this Java and these jars. The
// Java machine maps it instead of loading 8,000 classes, which halves Kafka's
// start; one that does not fit is ignored by it.
func archivePath(java string, jars []string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(java); err == nil {
		java = real
	}
	sum := sha256.New()
	for _, f := range append([]string{java}, jars...) {
		info, err := os.Stat(f)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(sum, f, info.Size(), info.ModTime().UnixNano())
	}
	return filepath.Join(cache, "queuelab", fmt.Sprintf("kafka-%s-%x.jsa", kafkaVersion, sum.Sum(nil)[:8])), nil
}
