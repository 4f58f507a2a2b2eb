import java.util.Arrays;
import java.util.Locale;
import java.util.Random;
import java.util.Scanner;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.bookkeeper.client.BKException;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.LedgerHandle;
import org.apache.bookkeeper.client.api.LastConfirmedAndEntry;
import org.apache.bookkeeper.client.api.ReadHandle;
import org.apache.bookkeeper.conf.ClientConfiguration;

/**
 * Measures BookKeeper. Each line of the input is one order, each line of the output its figures.
 *
 * <p>append COUNT | callers THREADS COUNT | pipelined COUNT WINDOW | tail COUNT | recover COUNT
 *
 * <p>Ledgers have ensemble 3, write quorum 3 and ack quorum 2; entries have 1,024 bytes.
 */
public final class BookKeeperClient {
  private static final byte[] PASSWORD = "peers".getBytes();
  private static final byte[] VALUE = new byte[1024];

  private BookKeeperClient() {}

  public static void main(String[] arguments) throws Exception {
    new Random(1).nextBytes(VALUE);
    String uri = arguments[0];
    try (BookKeeper client = new BookKeeper(settings(uri)); Scanner orders = new Scanner(System.in)) {
      System.out.println("{}");
      while (orders.hasNextLine()) {
        String[] order = orders.nextLine().trim().split(" ");
        int count = Integer.parseInt(order[order[0].equals("callers") ? 2 : 1]);
        switch (order[0]) {
          case "append" -> append(client, count);
          case "callers" -> callers(client, Integer.parseInt(order[1]), count);
          case "pipelined" -> pipelined(client, count, Integer.parseInt(order[2]));
          case "tail" -> tail(client, count);
          case "recover" -> recover(client, uri, count);
          default -> throw new IllegalArgumentException(order[0]);
        }
      }
    }
    Runtime.getRuntime().halt(0);
  }

  private static ClientConfiguration settings(String uri) {
    ClientConfiguration settings = new ClientConfiguration();
    settings.setMetadataServiceUri(uri);
    settings.setThrottleValue(0);
    settings.setExplictLacInterval(1); // milliseconds; so that a reader learns of the last entry soon
    return settings;
  }

  private static LedgerHandle ledger(BookKeeper client) throws Exception {
    return client.createLedger(3, 3, 2, BookKeeper.DigestType.CRC32C, PASSWORD);
  }

  /** How long a bookie may hold a read back: shorter than the client waits for its answer (5 s). */
  private static final long POLL_MS = 1_000;

  private static void append(BookKeeper client, int count) throws Exception {
    LedgerHandle ledger = ledger(client);
    ledger.addEntry(VALUE);
    long[] times = new long[count];
    for (int n = 0; n < count; n++) {
      long began = System.nanoTime();
      ledger.addEntry(VALUE);
      times[n] = System.nanoTime() - began;
    }
    ledger.close();
    tell(times);
  }

  private static void callers(BookKeeper client, int threads, int count) throws Exception {
    LedgerHandle ledger = ledger(client);
    ledger.addEntry(VALUE);
    CountDownLatch done = new CountDownLatch(threads);
    AtomicInteger failed = new AtomicInteger();
    long began = System.nanoTime();
    for (int thread = 0; thread < threads; thread++) {
      new Thread(
              () -> {
                try {
                  for (int n = 0; n < count / threads; n++) {
                    ledger.addEntry(VALUE);
                  }
                } catch (BKException | InterruptedException error) {
                  failed.incrementAndGet();
                }
                done.countDown();
              })
          .start();
    }
    done.await();
    rate(count / threads * threads, began, failed);
    ledger.close();
  }

  private static void pipelined(BookKeeper client, int count, int window) throws Exception {
    LedgerHandle ledger = ledger(client);
    ledger.addEntry(VALUE);
    Semaphore room = new Semaphore(window);
    AtomicInteger failed = new AtomicInteger();
    long began = System.nanoTime();
    for (int n = 0; n < count; n++) {
      room.acquire();
      ledger.asyncAddEntry(
          VALUE,
          (code, handle, entry, context) -> {
            if (code != BKException.Code.OK) {
              failed.incrementAndGet();
            }
            room.release();
          },
          null);
    }
    room.acquire(window);
    rate(count, began, failed);
    ledger.close();
  }

  private static ReadHandle reader(BookKeeper client, LedgerHandle ledger) throws Exception {
    return client.openLedgerNoRecovery(ledger.getId(), BookKeeper.DigestType.CRC32C, PASSWORD);
  }

  private static void tail(BookKeeper client, int count) throws Exception {
    LedgerHandle ledger = ledger(client);
    ledger.addEntry(VALUE);
    ReadHandle reader = reader(client, ledger);
    long[] times = new long[count];
    for (int n = 0; n < count; n++) {
      long wanted = n + 1;
      var seen = reader.readLastAddConfirmedAndEntryAsync(wanted, POLL_MS, true);
      long began = System.nanoTime();
      ledger.addEntry(VALUE);
      while (true) {
        try (LastConfirmedAndEntry found = seen.get(2 * POLL_MS, TimeUnit.MILLISECONDS)) {
          if (found.hasEntry()) {
            break;
          }
        } catch (TimeoutException unanswered) {
          reader = reader(client, ledger); // this one is answered no more
        }
        seen = reader.readLastAddConfirmedAndEntryAsync(wanted, POLL_MS, true);
      }
      times[n] = System.nanoTime() - began;
    }
    reader.close();
    ledger.close();
    tell(times);
  }

  private static void recover(BookKeeper client, String uri, int count) throws Exception {
    try (BookKeeper writer = new BookKeeper(settings(uri))) {
      LedgerHandle ledger = ledger(writer);
      for (int n = 0; n < count; n++) {
        ledger.addEntry(VALUE);
      }
      long began = System.nanoTime();
      LedgerHandle recovered =
          client.openLedger(ledger.getId(), BookKeeper.DigestType.CRC32C, PASSWORD);
      long[] times = {System.nanoTime() - began};
      if (recovered.getLastAddConfirmed() != count - 1) {
        throw new IllegalStateException("entries were lost");
      }
      tell(times);
    }
  }

  private static void tell(long[] times) {
    double sum = Arrays.stream(times).sum() / 1e9;
    Arrays.sort(times);
    System.out.printf(
        Locale.ROOT,
        "{\"p50_ms\": %.4f, \"p99_ms\": %.4f, \"per_second\": %.1f}%n",
        times[times.length / 2] / 1e6,
        times[(int) (times.length * 0.99)] / 1e6,
        times.length / sum);
  }

  private static void rate(int count, long began, AtomicInteger failed) {
    double seconds = (System.nanoTime() - began) / 1e9;
    if (failed.get() > 0) {
      throw new IllegalStateException(failed.get() + " appends failed");
    }
    System.out.printf(Locale.ROOT, "{\"per_second\": %.1f}%n", count / seconds);
  }
}
