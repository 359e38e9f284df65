package broker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// makeKafkaArchive makes the class-data archive where there is none, by running
// a Kafka of its own once. Without an archive Kafka starts all the same, so that
// a failure is not worth an error, and where another process is making one this
// one does not wait.
func makeKafkaArchive(ctx context.Context, k kind) {
	java, err := lookJava()
	if err != nil {
		return
	}
	jars, err := kafkaJars()
	if err != nil {
		return
	}
	archive, err := archivePath(java, jars)
	if err != nil {
		return
	}
	if _, err := os.Stat(archive); err == nil {
		return
	}
	if os.MkdirAll(filepath.Dir(archive), 0o755) != nil {
		return
	}
	lock, err := os.OpenFile(archive+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return
	}
	defer lock.Close()
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return
	}
	if _, err := os.Stat(archive); err == nil {
		return
	}
	name, content, err := k.settingsFile("")
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, k.patience)
	defer cancel()
	part := archive + ".part"
	n, err := planned(ctx, k, name, content, func(l layout) (plan, error) {
		return planKafkaWith(l, java, jars, []string{"-XX:ArchiveClassesAtExit=" + part})
	})
	if err != nil {
		return
	}
	defer n.stop()
	if n.launch(ctx) != nil {
		return
	}
	for url := fmt.Sprintf("kafka://127.0.0.1:%d", n.port()); kafkaReady(ctx, url, n.identity()) != nil; {
		select {
		case <-ctx.Done():
			return
		case <-n.died():
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
	// Written as the Java machine ends of its own accord.
	if n.sup.ask(ctx, opEnd) == nil {
		_ = os.Rename(part, archive)
	}
}
