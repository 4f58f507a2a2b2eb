import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.Scanner;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Measures Kafka. Each line of the input is one order, each line of the output its figures.
 *
 * <p>append COUNT | callers THREADS COUNT | pipelined COUNT WINDOW | tail COUNT | topic NAME
 *
 * <p>Topics have three replicas, of which two must be in step, and flush each message; producers ask
 * for acks=all. A record has 1,024 bytes.
 */
public final class KafkaClient {
  private static final byte[] VALUE = new byte[1024];
  private static String servers;

  private KafkaClient() {}

  public static void main(String[] arguments) throws Exception {
    new Random(1).nextBytes(VALUE);
    servers = arguments[0];
    int topics = 0;
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", servers));
        Scanner orders = new Scanner(System.in)) {
      System.out.println("{}");
      while (orders.hasNextLine()) {
        String[] order = orders.nextLine().trim().split(" ");
        String topic = order[0].equals("topic") ? order[1] : "measured-" + topics++;
        make(admin, topic, order[0].equals("topic") ? 2 : 1);
        switch (order[0]) {
          case "append" -> append(topic, Integer.parseInt(order[1]));
          case "callers" -> callers(topic, Integer.parseInt(order[1]), Integer.parseInt(order[2]));
          case "pipelined" ->
              pipelined(topic, Integer.parseInt(order[1]), Integer.parseInt(order[2]));
          case "tail" -> tail(topic, Integer.parseInt(order[1]));
          case "topic" -> System.out.println("{}");
          default -> throw new IllegalArgumentException(order[0]);
        }
        if (!order[0].equals("topic")) {
          admin.deleteTopics(List.of(topic)).all().get();
        }
      }
    }
    Runtime.getRuntime().halt(0);
  }

  private static void make(Admin admin, String name, int partitions) throws Exception {
    NewTopic topic = new NewTopic(name, partitions, (short) 3);
    topic.configs(Map.of("min.insync.replicas", "2", "flush.messages", "1"));
    admin.createTopics(List.of(topic)).all().get();
    try (Producer<byte[], byte[]> producer = producer(0)) {
      for (int partition = 0; partition < partitions; partition++) {
        producer.partitionsFor(name); // the first append would wait for the topic's leaders
      }
    }
  }

  private static Producer<byte[], byte[]> producer(int lingerMs) {
    Map<String, Object> settings =
        Map.of(
            "bootstrap.servers", servers,
            "acks", "all",
            "linger.ms", lingerMs,
            "batch.size", 131072,
            "buffer.memory", 67108864L);
    return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
  }

  private static ProducerRecord<byte[], byte[]> entry(String topic) {
    return new ProducerRecord<>(topic, 0, null, VALUE);
  }

  private static void append(String topic, int count) throws Exception {
    try (Producer<byte[], byte[]> producer = producer(0)) {
      producer.send(entry(topic)).get();
      long[] times = new long[count];
      for (int n = 0; n < count; n++) {
        long began = System.nanoTime();
        producer.send(entry(topic)).get();
        times[n] = System.nanoTime() - began;
      }
      tell(times);
    }
  }

  private static void callers(String topic, int threads, int count) throws Exception {
    try (Producer<byte[], byte[]> producer = producer(0)) {
      producer.send(entry(topic)).get();
      CountDownLatch done = new CountDownLatch(threads);
      AtomicInteger failed = new AtomicInteger();
      long began = System.nanoTime();
      for (int thread = 0; thread < threads; thread++) {
        new Thread(
                () -> {
                  try {
                    for (int n = 0; n < count / threads; n++) {
                      producer.send(entry(topic)).get();
                    }
                  } catch (Exception error) {
                    failed.incrementAndGet();
                  }
                  done.countDown();
                })
            .start();
      }
      done.await();
      rate(count / threads * threads, began, failed);
    }
  }

  private static void pipelined(String topic, int count, int window) throws Exception {
    try (Producer<byte[], byte[]> producer = producer(5)) {
      producer.send(entry(topic)).get();
      Semaphore room = new Semaphore(window);
      AtomicInteger failed = new AtomicInteger();
      long began = System.nanoTime();
      for (int n = 0; n < count; n++) {
        room.acquire();
        producer.send(
            entry(topic),
            (metadata, error) -> {
              if (error != null) {
                failed.incrementAndGet();
              }
              room.release();
            });
      }
      room.acquire(window);
      rate(count, began, failed);
    }
  }

  private static void tail(String topic, int count) throws Exception {
    Map<String, Object> settings =
        Map.of("bootstrap.servers", servers, "auto.offset.reset", "earliest", "fetch.min.bytes", 1);
    TopicPartition partition = new TopicPartition(topic, 0);
    try (Producer<byte[], byte[]> producer = producer(0);
        KafkaConsumer<byte[], byte[]> consumer =
            new KafkaConsumer<>(
                settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
      consumer.assign(List.of(partition));
      producer.send(entry(topic)).get();
      while (consumer.poll(Duration.ofSeconds(1)).isEmpty()) {}
      long[] times = new long[count];
      for (int n = 0; n < count; n++) {
        long began = System.nanoTime();
        producer.send(entry(topic));
        while (consumer.poll(Duration.ofSeconds(1)).isEmpty()) {}
        times[n] = System.nanoTime() - began;
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
