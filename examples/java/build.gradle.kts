plugins { java }

repositories { mavenCentral() }

dependencies {
    implementation("org.apache.kafka:kafka-clients:4.1.0")
    testImplementation("org.junit.jupiter:junit-jupiter:5.11.4")
    testRuntimeOnly("org.junit.platform:junit-platform-launcher")
}

java { toolchain { languageVersion = JavaLanguageVersion.of(17) } }

tasks.test { useJUnitPlatform() }

// What the assignor needs, for --classpath: build/lib.
tasks.register<Sync>("lib") {
    from(configurations.runtimeClasspath)
    into(layout.buildDirectory.dir("lib"))
}
